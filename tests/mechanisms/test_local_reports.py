"""k-ary response, unary encoding and subset selection: laws, and every report enumerated."""

import itertools
import random

import numpy as np
import pytest

import cumulant as cm
from tests import effort
from tests.mechanisms.brute import Law, hockey_stick, ordered, product, violations

ORDERS = [1.001, 1.5, 2, 7.3, 40]


def kary(values: int, p: float) -> list[Law]:
    """The law of the report for each value."""
    return [np.where(np.arange(values) == own, p, (1 - p) / (values - 1)) for own in range(values)]


def unary(values: int, p: float, q: float) -> list[Law]:
    def law(own: int) -> Law:
        bits = [np.array([1 - (p if bit == own else q), p if bit == own else q]) for bit in range(values)]
        return product(bits)

    return [law(own) for own in range(values)]


def subsets(values: int, size: int, epsilon: float) -> list[Law]:
    sets = list(itertools.combinations(range(values), size))

    def law(own: int) -> Law:
        weights = np.array([np.exp(epsilon) if own in each else 1.0 for each in sets])
        return weights / weights.sum()

    return [law(own) for own in range(values)]


def drawn(kind: str, rng: random.Random) -> tuple[cm.Mechanism, list[Law]]:
    values = rng.randint(2, 5)
    p, q = sorted((rng.randint(1, 999) / 1000, rng.randint(1, 998) / 1000), reverse=True)
    epsilon = rng.randint(1, 4000) / 1000
    match kind:
        case "KaryResponse":
            return cm.KaryResponse(values=values, p=p), kary(values, p)
        case "KaryResponse by epsilon":
            top = np.exp(epsilon) / (np.exp(epsilon) + values - 1)
            return cm.KaryResponse(values=values, epsilon=epsilon), kary(values, top)
        case "UnaryEncoding":
            q = q if q < p else p / 2
            return cm.UnaryEncoding(p=p, q=q), unary(values, p, q)
    size = rng.randint(1, values - 1)
    return cm.SubsetSelection(values=values, size=size, epsilon=epsilon), subsets(values, size, epsilon)


@pytest.mark.parametrize("kind", ["KaryResponse", "KaryResponse by epsilon", "UnaryEncoding", "SubsetSelection"])
def test_every_report_enumerated(kind: str) -> None:
    """The formula is attained: no pair of values needs more, and some pair needs all of it."""
    rng = random.Random(kind)
    for _ in range(effort.drawn(100)):
        mechanism, laws = drawn(kind, rng)
        epsilons = [0.0, rng.uniform(0, mechanism.pure()), 0.9 * mechanism.pure()]
        wrong, share = violations(mechanism, ordered(laws), epsilons, ORDERS)
        assert not wrong, mechanism
        assert share == pytest.approx(1, rel=1e-6) or mechanism.pure() < 1e-6


@pytest.mark.parametrize("kind", ["KaryResponse", "UnaryEncoding", "SubsetSelection"])
def test_rounds_enumerated(kind: str) -> None:
    """Three reports, each about any value: the composition is attained as well."""
    rng = random.Random(f"{kind}, three")
    for _ in range(12):
        mechanism, laws = drawn(kind, rng)
        laws = laws[:3]
        epsilon = round(rng.uniform(0, 2 * mechanism.pure()), 3)
        needed = max(
            hockey_stick(product([p for p, _ in pairs]), product([q for _, q in pairs]), epsilon)
            for pairs in itertools.combinations_with_replacement(list(ordered(laws)), 3)
        )
        claimed = (mechanism * 3).delta(epsilon=epsilon)
        assert claimed >= needed * (1 - 1e-9)
        assert claimed <= needed * (1 + 1e-3) + 1e-10


def test_two_values_are_randomized_response() -> None:
    for p in ("0.6", "0.75", "0.999"):
        response, same = cm.RandomizedResponse(p=p), cm.KaryResponse(values=2, p=p)
        odds = cm.SubsetSelection(values=2, size=1, epsilon=response.pure())
        for order in (1, 1.5, 2, 30, np.inf):
            assert same.rdp(order) == pytest.approx(response.rdp(order), rel=1e-12)
            assert odds.rdp(order) == pytest.approx(response.rdp(order), rel=1e-9)
        assert same.delta(epsilon="0.1") == pytest.approx(response.delta(epsilon="0.1"), rel=1e-12)
        sample = cm.WithoutReplacement(rate="0.1")
        assert (same @ sample * 10).epsilon(1e-6) == pytest.approx((response @ sample * 10).epsilon(1e-6), rel=1e-6)


def test_unary_encoding_of_opposite_bits_is_two_responses() -> None:
    twice, unary = cm.RandomizedResponse(p="0.7") * 2, cm.UnaryEncoding(p="0.7", q="0.3")
    for order in (1, 1.5, 2, 30, np.inf):
        assert unary.rdp(order) == pytest.approx(twice.rdp(order), rel=1e-12)
    assert unary.delta(epsilon="0.5") == pytest.approx(twice.delta(epsilon="0.5"), rel=1e-6)


def test_subsets_of_one_are_kary_responses() -> None:
    one, other = cm.SubsetSelection(values=7, size=1, epsilon=2), cm.KaryResponse(values=7, epsilon=2)
    for order in (1, 1.5, 2, 30, np.inf):
        assert one.rdp(order) == pytest.approx(other.rdp(order), rel=1e-13)
    assert one.delta(epsilon=1) == pytest.approx(other.delta(epsilon=1), rel=1e-13)


def test_each_report_counts() -> None:
    """Fifty reports are not one."""
    one = cm.KaryResponse(values=4, p="1/2")
    assert (one * 50).epsilon(0) == pytest.approx(50 * one.epsilon(0), rel=1e-9)
    assert (one * 50).epsilon(1e-6) > 20 * one.epsilon(1e-6)


def test_a_value_that_tells_less_than_chance_is_turned_around() -> None:
    seldom, often = cm.KaryResponse(values=3, p="0.1"), kary(3, 0.1)
    assert seldom.delta(epsilon=0) == pytest.approx(hockey_stick(often[0], often[1], 0), rel=1e-12)
    assert cm.KaryResponse(values=4, p="1/4").epsilon(0) == 0


def test_what_is_refused() -> None:
    for scheme in (cm.Poisson(rate="0.1"),):
        for report in (cm.KaryResponse(values=3, p="0.5"), cm.UnaryEncoding(p="0.5", q="0.2")):
            with pytest.raises(cm.RelationError, match="replace-one"):
                report @ scheme
    with pytest.raises(cm.InputError, match="q=1/2 must be below p=1/2"):
        cm.UnaryEncoding(p="1/2", q="1/2")
    with pytest.raises(cm.InputError, match="size=4 must be below values=4"):
        cm.SubsetSelection(values=4, size=4, epsilon=1)
    with pytest.raises(cm.InputError, match="an integer"):
        cm.KaryResponse(values="2.5", p="1/2")
    with pytest.raises(cm.InputError, match="or values=… and epsilon"):
        cm.KaryResponse(values=4)
    with pytest.raises(cm.InputError, match="p=1 must be"):
        cm.KaryResponse(values=4, p=1)


def test_text_and_calibration() -> None:
    for run in (
        cm.KaryResponse(values=4, epsilon="1/3") * 3,
        cm.UnaryEncoding(p="1/2", q="1/5") @ cm.WithoutReplacement(rate="1/7"),
        cm.SubsetSelection(values=10, size=3, epsilon=1) + cm.PureDP(1),
    ):
        assert cm.parse(str(run)) == run
    found = cm.calibrate("KaryResponse(values=10, epsilon=?) * 5", epsilon=2, delta="1e-6")
    assert found.guarantee.epsilon <= 2
    assert cm.calibrate("UnaryEncoding(p=1/2, q=?)", epsilon=1, delta=0).guarantee.epsilon <= 1


@pytest.mark.parametrize("given", [{"p": "0.5"}, {"epsilon": "1.4"}])
def test_three_answers_on_a_sample_attain_the_upper_end(given: dict[str, str]) -> None:
    """The query says p, q or r: with the record, with its replacement, or with neither in the sample."""
    one = cm.KaryResponse(values=5, **given)
    rate, own = 0.1, 0.5 if "p" in given else float(np.exp(1.4) / (np.exp(1.4) + 4))
    r, p, q = kary(5, own)[:3]
    first, second = product([(1 - rate) * r + rate * p] * 3), product([(1 - rate) * r + rate * q] * 3)
    for epsilon in (0.05, 0.2, 0.5):
        found = (one @ cm.WithoutReplacement(rate="0.1") * 3).guarantee(epsilon=epsilon)
        true = hockey_stick(first, second, epsilon)
        assert found.lower is not None
        assert true * (1 - 1e-9) <= found.lower * (1 + 1e-6)
        assert found.lower <= found.delta
        # an adversary who adapts may need more than these three rounds, so the lower end may lie above them
        assert true <= found.delta * (1 + 1e-12)


def test_many_sampled_answers_have_a_narrow_interval() -> None:
    run = cm.KaryResponse(values=5, p="0.5") @ cm.WithoutReplacement(rate="0.01") * 100_000
    found = run.guarantee(delta="1e-9")
    assert found.lower is not None
    assert 38.6825 < found.lower <= found.epsilon < 38.6826
    assert found.lower_rigour == "proved"
