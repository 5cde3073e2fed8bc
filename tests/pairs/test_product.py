"""A few rounds of finitely many losses: their product against a sum over all outputs."""

import itertools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import partial

import pytest

import cumulant as cm
from cumulant.accounting.rounds import rounds_of
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.product import MOST_ROUNDS, ProductPair

Law = list[tuple[Decimal, Decimal]]


def response(epsilon: str, leak: str = "0") -> Law:
    """The worst pair of (epsilon, leak)-DP by its definition: an answer, or the input itself."""
    e, d = Decimal(epsilon).exp(), Decimal(leak)
    return [
        ((1 - d) * e / (1 + e), (1 - d) / (1 + e)),
        ((1 - d) / (1 + e), (1 - d) * e / (1 + e)),
        (d, Decimal(0)),
        (Decimal(0), d),
    ]


def reports(values: int, p: str) -> Law:
    """k-ary response: the true value with probability p, every other one with the same share of the rest."""
    truth, other = Decimal(p), (1 - Decimal(p)) / (values - 1)
    return [(truth, other), (other, truth), *[(other, other)] * (values - 2)]


def delta_of(laws: list[Law], epsilon: str) -> Decimal:
    """SUM (p - e^epsilon q)_+ over all outputs of all rounds."""
    factor, total = Decimal(epsilon).exp(), Decimal(0)
    for outputs in itertools.product(*laws):
        p, q = (math.prod(each[i] for each in outputs) for i in (0, 1))
        total += max(p - factor * q, Decimal(0))
    return total


RUNS: dict[str, list[tuple[str, Callable[[], Law], int]]] = {
    "two promises": [
        ("PureDP(epsilon=0.3)", partial(response, "0.3"), 1),
        ("PureDP(epsilon=0.7)", partial(response, "0.7"), 1),
    ],
    "losses that cancel": [
        ("PureDP(epsilon=0.3)", partial(response, "0.3"), 2),
        ("PureDP(epsilon=0.6)", partial(response, "0.6"), 1),
    ],
    "a leak": [
        ("ApproximateDP(epsilon=0.5, delta=0.01)", partial(response, "0.5", "0.01"), 2),
        ("PureDP(epsilon=0.2)", partial(response, "0.2"), 2),
    ],
    "an equal output": [
        ("KaryResponse(values=4, p=0.55)", partial(reports, 4, "0.55"), 3),
        ("PureDP(epsilon=0.4)", partial(response, "0.4"), 1),
    ],
    "small and large": [
        ("PureDP(epsilon=0.00004)", partial(response, "0.00004"), 1),
        ("PureDP(epsilon=5)", partial(response, "5"), 2),
    ],
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("epsilon", ["0", "0.05", "0.31", "0.6", "1.1", "3"])
def test_delta_is_the_sum_over_all_outputs(name: str, epsilon: str) -> None:
    run = cm.parse(" + ".join(f"{text} * {times}" for text, _, times in RUNS[name]))
    with localcontext(prec=60):
        truth = delta_of([law() for _, law, times in RUNS[name] for _ in range(times)], epsilon)
    found = run.guarantee(epsilon=epsilon, method="exact")
    assert found.rigour == "proved"
    with localcontext(prec=60):
        assert truth * (1 - Decimal("1e-40")) <= Decimal(repr(found.delta)) <= truth * (1 + Decimal("1e-15"))
        if found.lower is not None:
            assert truth * (1 - Decimal("1e-15")) <= Decimal(repr(found.lower)) <= truth


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("delta", ["0.05", "1e-3", "1e-9"])
def test_epsilon_is_where_the_sum_reaches_delta(name: str, delta: str) -> None:
    run = cm.parse(" + ".join(f"{text} * {times}" for text, _, times in RUNS[name]))
    found = run.guarantee(delta=delta, method="exact")
    if math.isinf(found.epsilon):
        assert "ApproximateDP" in found.run
        return
    with localcontext(prec=60):
        laws = [law() for _, law, times in RUNS[name] for _ in range(times)]
        assert delta_of(laws, repr(found.epsilon)) <= Decimal(delta)
        if found.lower:
            assert delta_of(laws, repr(found.lower)) >= Decimal(delta)
            assert found.epsilon <= found.lower * (1 + 1e-15)


def test_sums_that_may_cancel_have_no_product() -> None:
    """2 log 3 = log 9 cancels, and balls never decide that; a line or a grid answers."""
    found, _ = rounds_of(cm.parse("RandomizedResponse(p=3/4) * 2 + RandomizedResponse(p=9/10)").record())
    assert found is not None
    assert found.single() is None


@pytest.mark.parametrize(
    ("text", "small"),
    [
        (f"PureDP(0.3) * {MOST_ROUNDS}", True),
        (f"PureDP(0.3) * {MOST_ROUNDS + 1}", False),
        ("KaryResponse(values=4, p=0.55) * 16", True),  # 153 atoms
        ("KaryResponse(values=4, p=0.55) * 4 + KaryResponse(values=5, p=0.6) * 5", True),  # 15 * 21 = 315
        ("KaryResponse(values=4, p=0.55) * 5 + KaryResponse(values=5, p=0.6) * 6", False),  # 21 * 28 = 588
    ],
)
def test_only_few_rounds_and_atoms_have_a_product(text: str, small: bool) -> None:
    found, _ = rounds_of(cm.parse(text).record())
    assert found is not None
    assert (found.single() is not None) == small


def test_a_product_is_symmetric_and_sums_to_one() -> None:
    found, _ = rounds_of(cm.parse("KaryResponse(values=4, p=0.55) * 2 + ApproximateDP(0.2, 0.01)").record())
    assert found is not None
    single = found.single()
    assert single is not None
    assert isinstance(single[0], ProductPair)
    with BALLS.at(256):
        x, log_p = single[0].losses(BALLS)
        total = sum(
            (log.exp() * (1 + (-each).exp()) for each, log in zip(x, log_p, strict=True)), single[0].exact_equal()
        )
        assert (total + BALLS.number(single[0].leak)).contains(1)
        assert float(total.rad()) < 1e-60
    assert list(map(float, x)) == sorted(map(float, x))


def test_the_larger_of_two_profiles_has_no_lower_end_of_its_own() -> None:
    """Of laws that are not mirror images the product bounds from above; the lower end is that of one order of the laws."""
    p, q = [["0.6", "0.3", "0.1"], ["0.2", "0.3", "0.5"]]
    run = cm.from_masses(p, q) * 3
    laws = [[(Decimal(a), Decimal(b)) for a, b in zip(*each, strict=True)] for each in ((p, q), (q, p))]
    for epsilon in ("0.1", "0.7", "1.5", "3"):
        found = run.guarantee(epsilon=epsilon)
        with localcontext(prec=60):
            truth = max(delta_of([law] * 3, epsilon) for law in laws)
            assert truth * (1 - Decimal("1e-40")) <= Decimal(repr(found.delta))
            assert found.lower is None or Decimal(repr(found.lower)) <= truth


def test_rounds_that_may_adapt_or_are_sampled_are_not_multiplied() -> None:
    for text in ("ExponentialMechanism(0.3) * 2", "PureDP(0.3) @ Poisson(rate=0.5) * 2", "Laplace(scale=2) * 2"):
        found, _ = rounds_of(cm.parse(text).record())
        assert found is not None
        assert found.single() is None
