"""Every law over every registered mechanism and bound."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cumulant as cm
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.numerics.arithmetic import BALLS
from cumulant.sampling.rated import Rated
from tests.effort import drawn, share
from tests.laws.strategies import RATED, WHOLE_RUNS, expressions, fitting, mechanisms, parameters, rates, sampled_by

ORDERS = np.array([1.0, 1 + 1e-9, 1.3, 2.0, 2.5, 3.0, 8.0, 33.0, 100.5, 1e4])
UPPER = [name for name, bound in cm.BOUNDS.items() if bound.upper]
law = settings(max_examples=drawn(5), deadline=None)
every_scheme = pytest.mark.parametrize("scheme", RATED.values(), ids=RATED)


def test_every_mechanism_has_a_strategy() -> None:
    for kind in MECHANISMS.values():
        parameters(kind)


@settings(law, max_examples=drawn(3))
@given(expressions)
def test_nothing_is_nan_or_negative(run: cm.Expression) -> None:
    rdp = run.rdp(np.append(ORDERS, np.inf))
    assert not np.isnan(rdp).any()
    assert (rdp >= 0).all()
    for delta in (0, 1e-300, 1e-8, 0.5, 1):
        assert run.epsilon(delta=delta) >= 0
    for epsilon in (0, 1e-9, 1, 1e6):
        assert 0 <= run.delta(epsilon=epsilon) <= 1


@law
@given(mechanisms)
def test_base_curves_grow_with_the_order(mechanism: cm.Mechanism) -> None:
    rdp = mechanism.rdp(np.append(ORDERS, np.inf))
    finite = rdp[np.isfinite(rdp)]
    assert (np.diff(finite) >= -1e-11 * finite[1:] - 1e-300).all()


@law
@given(mechanisms)
def test_k_of_a_known_pair_is_zero_at_both_ends_and_negative_between(mechanism: cm.Mechanism) -> None:
    """Lemma 36: K(-1) = K(0) = 0, convex, K' increasing; where no pair is known nothing is claimed.

    What only one of the laws can produce is missing from K(-1) = log(1 - leak).
    """
    try:
        values = mechanism.cgf([-1, -0.75, -0.5, -0.25, 0])
    except cm.HypothesisError:
        pair = mechanism.pair()
        assert pair is None or pair.taylor(Fraction(-1, 2), 1) is None
        return
    assert values[-1] == 0.0
    pair = mechanism.pair()
    loss = None if pair is None else pair.loss()
    if loss is not None and loss.leak:
        assert values[0] == pytest.approx(math.log1p(-loss.leak), rel=1e-9)
        return
    assert abs(values[0]) <= 1e-300
    assert (values[1:-1] <= 0).all()
    assert (np.diff(values, 2) >= -1e-15 * np.abs(values).max()).all()
    slopes = [mechanism.cgf_derivative(lam) for lam in (-1, -0.5, 0, 1)]
    assert (np.diff(slopes) >= 0).all()


@law
@given(mechanisms)
def test_base_cgf_is_convex(mechanism: cm.Mechanism) -> None:
    lam = np.linspace(0.25, 20, 80)
    cgf = mechanism.cgf(lam)
    given = (
        "from_rdp_points",
        "ExponentialFamilyMechanism",
        "SparseVector",
    )  # minima of bounds and chords of points are not CGFs
    if np.isfinite(cgf).all() and mechanism.name() not in given:
        assert (np.diff(cgf, 2) >= -1e-11 * cgf[2:]).all()


@law
@given(expressions, st.integers(1, 10**12))
def test_repetition_multiplies(run: cm.Expression, times: int) -> None:
    assert (run * times).rdp(ORDERS) == pytest.approx(times * run.rdp(ORDERS), rel=1e-12)


@every_scheme
@settings(law, max_examples=drawn(3))
@given(data=st.data())
def test_permuting_a_sum_changes_nothing(scheme: type[Rated], data: st.DataObject) -> None:
    a, b, c = (data.draw(drawn) for drawn in (sampled_by(scheme), fitting(scheme), sampled_by(scheme)))
    one, other = a + b + c, c + a + b
    assert one == other
    assert hash(one) == hash(other)
    assert one.epsilon(delta=1e-6) == other.epsilon(delta=1e-6)
    assert (one.rdp(ORDERS) == other.rdp(ORDERS)).all()


TWINS = [  # different mechanisms with equal curves
    (cm.Gaussian(sigma=1), cm.ZeroConcentrated(rho="1/2")),
    (cm.Gaussian(sigma=1), cm.Gaussian(sigma=1, geometry="ball")),
    (cm.PureDP("0.5"), cm.ApproximateDP("0.5", 0)),
    (cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=1), cm.ZeroConcentrated(rho="1/2")),
    (cm.Gaussian(sigma=1) @ cm.Poisson(rate=1), cm.ZeroConcentrated(rho="1/2")),
]


@pytest.mark.parametrize(("one", "other"), TWINS, ids=str)
def test_equal_curves_all_count(one: cm.Expression, other: cm.Expression) -> None:
    run = one * 1000 + other
    assert run.rdp(ORDERS) == pytest.approx(1000 * one.rdp(ORDERS) + other.rdp(ORDERS), rel=1e-11)
    expected = (one * 1001).epsilon(delta=1e-5, method="rdp")
    assert run.epsilon(delta=1e-5, method="rdp") == pytest.approx(expected, rel=1e-6)
    poisson = run.relation is cm.Relation.ADD_REMOVE
    sample, bound = (cm.Poisson(0.5), "poisson-sum") if poisson else (cm.WithoutReplacement(0.5), "theorem9")
    twice = ((one * 1001) @ sample).rdp(2, bound=bound)
    assert (run @ sample).rdp(2, bound=bound) == pytest.approx(twice, rel=1e-9)
    accountant = cm.Accountant()
    accountant.compose(one, 1000)
    accountant.compose(other)
    assert accountant.rdp(2) == run.rdp(2)


@law
@given(mechanisms, mechanisms, st.integers(1, 50), st.integers(1, 50))
def test_composition_adds(one: cm.Expression, other: cm.Expression, i: int, j: int) -> None:
    """Lemma 5, also where the two mechanisms are equal or have equal curves."""
    expected = i * one.rdp(ORDERS) + j * other.rdp(ORDERS)
    assert (one * i + other * j).rdp(ORDERS) == pytest.approx(expected, rel=1e-11)


@law
@given(expressions)
def test_text_and_json_round_trips(run: cm.Expression) -> None:
    assert cm.parse(str(run)) == run
    accountant = cm.Accountant()
    accountant.compose(run)
    assert cm.Accountant.from_json(accountant.to_json()) == accountant


@every_scheme
@law
@given(data=st.data())
def test_rate_one_is_the_base_and_rate_zero_is_nothing(scheme: type[Rated], data: st.DataObject) -> None:
    mechanism = data.draw(fitting(scheme))
    whole = mechanism @ scheme(rate=1)
    for bound in UPPER:
        assert whole.rdp(ORDERS, bound=bound) == pytest.approx(mechanism.rdp(ORDERS), rel=1e-12)
    tiny = mechanism @ scheme(rate="1e-12")
    base = mechanism.rdp(2)
    if base < 10:
        assert tiny.rdp(2) <= 1e-10 * math.expm1(base) + 1e-300


@every_scheme
@law
@given(data=st.data(), pair=st.lists(rates, min_size=2, max_size=2, unique=True))
def test_more_sampling_is_less_private(scheme: type[Rated], data: st.DataObject, pair: list[Fraction]) -> None:
    mechanism = data.draw(fitting(scheme))
    low, high = (mechanism @ scheme(rate=rate) for rate in sorted(pair))
    a, b = low.rdp(ORDERS), high.rdp(ORDERS)
    known = np.isfinite(b)
    assert (a[known] <= b[known] * (1 + 1e-9)).all()


@every_scheme
@law
@given(data=st.data())
def test_best_is_the_best_and_never_above_the_base(scheme: type[Rated], data: st.DataObject) -> None:
    run = data.draw(sampled_by(scheme))
    best = run.rdp(ORDERS)
    for bound in UPPER:
        try:
            other = run.rdp(ORDERS, bound=bound)
        except cm.HypothesisError:
            continue
        assert (best <= other * (1 + 1e-9)).all(), bound
    assert isinstance(run, cm.Sampled)
    assert (best <= run.inner.rdp(ORDERS) * (1 + 1e-9)).all()


# ---- more noise, more order, more sampling

NOISES = [(cm.Gaussian, "sigma"), (cm.Laplace, "scale")]
noise = st.builds(lambda m, e: Fraction(m, 10) * Fraction(10) ** e, st.integers(1, 99), st.integers(-1, 2))


def applicable(run: cm.Expression) -> list[str]:
    """The upper bounds whose hypotheses this run meets."""
    names = []
    for bound in UPPER:
        try:
            run.curve(bound)
        except cm.HypothesisError:
            continue
        names.append(bound)
    return names


NEEDS = {
    "profile": ["Gaussian", "Laplace", "RandomizedResponse", "from_masses"],
    "gaussian-diameter": ["Gaussian"],
    "one-bit": ["RandomizedResponse"],
    "poisson": ["Gaussian", "Laplace", "RandomizedResponse", "from_masses"],
    "pure-response": ["Laplace", "PureDP", "ApproximateDP", "from_masses"],
}
"""The mechanisms on which a bound is tried where it does not apply to most of them."""


def bases_for(bound: str) -> st.SearchStrategy[cm.Mechanism]:
    """Mechanisms to which this bound may apply."""
    kinds = st.sampled_from(NEEDS.get(bound, sorted(set(MECHANISMS) - WHOLE_RUNS)))
    return kinds.flatmap(lambda name: parameters(MECHANISMS[name]).map(lambda given: MECHANISMS[name](**given)))


def sampled_for(bound: str, scheme: type[Rated] = cm.WithoutReplacement) -> st.SearchStrategy[cm.Expression]:
    """Mechanisms on samples of this kind to which this bound applies."""
    bases = bases_for(bound).filter(lambda base: base.relation in (cm.Relation.ANY, scheme.relation))
    runs = st.builds(lambda base, rate: base @ scheme(rate=rate), bases, rates)
    return runs.filter(lambda run: bound in applicable(run))


@every_scheme
@pytest.mark.parametrize(("kind", "parameter"), NOISES, ids=lambda x: getattr(x, "__name__", None))
@settings(law, max_examples=drawn(3))
@given(levels=st.lists(noise, min_size=2, max_size=2, unique=True), rate=rates)
def test_more_noise_is_more_private(
    kind: type[cm.Mechanism], parameter: str, scheme: type[Rated], levels: list[Fraction], rate: Fraction
) -> None:
    noisier, other = (kind(**{parameter: level}) @ scheme(rate=rate) for level in sorted(levels, reverse=True))
    bounds = applicable(noisier)
    assert len(bounds) >= (4 if scheme is cm.Poisson else 9)
    for bound in bounds:
        a, b = noisier.rdp(ORDERS, bound=bound), other.rdp(ORDERS, bound=bound)
        assert (a <= b * (1 + 1e-9)).all(), bound


GROWING = [
    ("best", cm.WithoutReplacement),
    ("profile", cm.WithoutReplacement),
    ("best", cm.Poisson),
    ("poisson", cm.Poisson),
    ("pure-response", cm.Poisson),
]


@pytest.mark.parametrize(("bound", "scheme"), GROWING)
@settings(law, max_examples=drawn(2))
@given(data=st.data())
def test_sampled_curves_grow_with_the_order(bound: str, scheme: type[Rated], data: st.DataObject) -> None:
    """Literal rows need not (E-14)."""
    rdp = data.draw(sampled_for(bound, scheme)).rdp(np.append(ORDERS, np.inf), bound=bound)
    finite = rdp[np.isfinite(rdp)]
    assert (np.diff(finite) >= -1e-9 * finite[1:] - 1e-300).all()


@settings(law, max_examples=drawn(3))
@given(sampled_for("theorem9"))
def test_cgf_is_convex_after_projection(run: cm.Expression) -> None:
    # on the scan, where the hull has its corners; between them the smaller of curve and chord need not be convex
    cgf = np.append(0.0, run.curve("theorem9").projected().cgf(np.arange(1.0, 33.0)))
    known = cgf[np.isfinite(cgf)]
    assert (np.diff(known, 2) >= -1e-9 * known[2:]).all()


@pytest.mark.parametrize("bound", ["profile", "caps"])
@settings(law, max_examples=drawn(2))
@given(data=st.data(), pair=st.lists(rates, min_size=2, max_size=2, unique=True))
def test_more_sampling_is_less_private_by_name(bound: str, data: st.DataObject, pair: list[Fraction]) -> None:
    mechanism = data.draw(bases_for(bound))
    low, high = (mechanism @ cm.WithoutReplacement(rate=rate) for rate in sorted(pair))
    a, b = low.rdp(ORDERS, bound=bound), high.rdp(ORDERS, bound=bound)
    assert (a <= b * (1 + 1e-9)).all()


# ---- the two arithmetics


BOTH = [
    *(
        (bound, cm.WithoutReplacement)
        for bound in ("theorem9", "caps", "profile", "gaussian-diameter", "one-bit", "best")
    ),
    *((bound, cm.Poisson) for bound in ("poisson", "poisson-sum", "pure-response", "best")),
]


@pytest.mark.parametrize(("bound", "scheme"), BOTH)
@settings(law, max_examples=drawn(3))
@given(data=st.data())
def test_floats_lie_at_the_balls(bound: str, scheme: type[Rated], data: st.DataObject) -> None:
    """The same formulas in both arithmetics, and the scalar answer, which is proved, not below the float search."""
    run = data.draw(sampled_for(bound, scheme))
    lam = [Fraction(1, 3), Fraction(1), Fraction(9, 2), Fraction(20)]
    curve = run.curve(bound)
    floats = curve.cgf([float(x) for x in lam])
    with BALLS.at(128):
        balls = [float(x.mid()) for x in curve.cgf(lam, BALLS)]
    for approximate, proved in zip(floats, balls, strict=True):
        assert approximate == pytest.approx(proved, rel=1e-11) or not math.isfinite(proved)
    proved, searched = run.epsilon(1e-6, bound=bound), run.epsilon([1e-6], bound=bound)[0]
    assert proved >= searched * (1 - 1e-12)


# ---- far out

FAR_RATES = ["1e-12", "0.5", "1"]


@every_scheme
@pytest.mark.parametrize("rate", FAR_RATES)
@pytest.mark.parametrize(
    ("place", "base"),
    list(
        enumerate(
            [
                cm.Gaussian(sigma="1e-3"),
                cm.Gaussian(sigma="1e6"),
                cm.Laplace(scale="1e-3"),
                cm.Laplace(scale="1e6"),
                cm.RandomizedResponse(p="1/2"),
                cm.RandomizedResponse(p="0.999999999"),
                cm.PureDP(0),
                cm.PureDP(1000),
            ]
        )
    ),
    ids=str,
)
def test_extreme_values(place: int, base: cm.Mechanism, rate: str, scheme: type[Rated]) -> None:
    run = base @ scheme(rate=rate) * 10**12
    rdp = run.rdp([1, 1 + 1e-9, 1.5, 2, 1000, 1e9, math.inf])
    assert not np.isnan(rdp).any()
    assert (rdp >= 0).all()
    for delta in share((1e-300, 1e-8, 0.999), place + FAR_RATES.index(rate)):
        assert run.epsilon(delta=delta) >= 0
        if scheme is cm.WithoutReplacement:
            assert run.epsilon(delta=delta, method="paper") >= run.epsilon(delta=delta) * (1 - 1e-9)
    if base.pure() > 0:
        assert run.delta(epsilon=0) > 0
