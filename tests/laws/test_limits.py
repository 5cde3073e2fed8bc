"""Laws and limits of mechanisms and combinators that need no reference, combinators drawn at random among them."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cumulant as cm
from tests.effort import drawn

EPSILONS = [0.0, 0.2, 0.7, 1.5]
ORDERS = [1, 1.5, 2, 16, math.inf]


def same(one: cm.Expression, other: cm.Expression, room: float = 1e-12) -> None:
    assert one.rdp(ORDERS) == pytest.approx(other.rdp(ORDERS), rel=room, abs=1e-300)
    assert one.delta(EPSILONS) == pytest.approx(other.delta(EPSILONS), rel=max(room, 1e-9), abs=1e-14)


def test_responses() -> None:
    response = cm.RandomizedResponse(p="3/4")
    same(cm.KaryResponse(values=2, p="3/4"), response)
    odds = cm.DiscreteLaplace(scale=2)
    same(odds, cm.KaryResponse(values=2, epsilon="1/2"))
    same(cm.UnaryEncoding(p="3/4", q="1/4"), response * 2, room=2e-3)
    same(cm.SubsetSelection(values=7, size=1, epsilon=1), cm.KaryResponse(values=7, epsilon=1))


def test_gaussians() -> None:
    same(cm.GaussianDP(mu="1/2"), cm.Gaussian(sigma=2))
    discrete, smooth = cm.DiscreteGaussian(sigma="1/2", dimension=1), cm.Gaussian(sigma="1/2")
    for order in (2, 3, 8):
        assert discrete.rdp(order) == pytest.approx(smooth.rdp(order), rel=1e-12)
    for between in (1.5, 2.5, 7.3):
        assert discrete.rdp(between) < smooth.rdp(between)
    assert cm.DiscreteGaussian(sigma=2, dimension=1).rdp(2.5) == pytest.approx(cm.Gaussian(sigma=2).rdp(2.5), rel=1e-14)
    same(cm.Gaussian(sigma=6) @ cm.Group(size=2) @ cm.Group(size=3), cm.Gaussian(sigma=1))


def test_profiles() -> None:
    one = cm.PrivacyProfile(["1/2"], ["1e-3"])
    assert one.delta(EPSILONS) == pytest.approx(cm.ApproximateDP("1/2", "1e-3").delta(EPSILONS), rel=1e-9)
    same(cm.PrivacyProfile(["1/2"], [0]), cm.PureDP("1/2"), room=1e-9)
    gaussian, points = cm.Gaussian(sigma=2), ["0", "0.25", "0.5", "1", "2"]
    table = cm.PrivacyProfile(points, [Fraction(gaussian.delta(x)) for x in points])
    for x in points:
        assert table.delta(x) == pytest.approx(gaussian.delta(x), rel=1e-9)
    for x in ("0.1", "0.6", "1.7"):
        assert table.delta(x) > gaussian.delta(x)


@pytest.mark.parametrize("base", [cm.Gaussian(sigma=2), cm.Laplace(scale=1), cm.PureDP(1)], ids=str)
def test_ones(base: cm.Mechanism) -> None:
    """A group of one, the best of one, a run once: the base itself."""
    for once in (base @ cm.Group(size=1), base @ cm.RepeatAndSelect(mean=1), base * 1, base @ cm.Poisson(rate=1)):
        same(once, base)


def test_sparse_vectors() -> None:
    hits = [cm.SparseVector(threshold=9, query=9, hits=c).epsilon(1e-6) for c in (1, 2, 4)]
    assert hits == sorted(hits)
    queries = [cm.SparseVector(threshold=9, query=9, noise="gaussian", queries=k).rdp(3) for k in (1, 5, 50)]
    assert queries == sorted(queries)


bases = st.one_of(
    st.integers(2, 40).map(lambda s: cm.Gaussian(sigma=s)),
    st.integers(1, 40).map(lambda s: cm.Laplace(scale=s)),
    st.integers(1, 90).map(lambda e: cm.PureDP(Fraction(e, 100))),
    st.integers(51, 90).map(lambda p: cm.RandomizedResponse(p=Fraction(p, 100))),
)
means = st.integers(2, 400).map(lambda m: Fraction(m, 2))
shapes = st.sampled_from([0, "1/2", 1, 2])
combined = st.one_of(
    st.builds(lambda m, k: m @ cm.Group(size=k), bases, st.integers(2, 6)),
    st.builds(
        lambda m, mean, eta: m @ cm.RepeatAndSelect(mean=mean, shape=eta),
        bases,
        means,
        st.sampled_from([0, "1/2", 1, 2]),
    ),
    st.builds(lambda m, mean: m @ cm.RepeatAndSelect(mean=mean, number="poisson"), bases, means),
    st.builds(lambda a, b: a | b, bases, bases),
    st.builds(lambda a, b: cm.parallel(a * 2, b, by="position"), bases, bases),
    st.builds(lambda a, b: cm.parallel(a, b, relation="replace-one"), bases, bases),
    st.builds(lambda m, r: m @ cm.Poisson(rate=r) @ cm.Group(size=2), bases, st.sampled_from(["0.1", "0.01"])),
)


@settings(max_examples=drawn(10), deadline=None)
@given(combined, st.integers(2, 9))
def test_combinators(run: cm.Expression, times: int) -> None:
    """Text, equality, composition and order of the curve, whatever is combined."""
    assert cm.parse(str(run)) == run
    assert hash(cm.parse(str(run))) == hash(run)
    orders = [1, 1.5, 2, 8, 64]
    one = run.rdp(orders)
    assert (one >= 0).all()
    assert (run * times).rdp(orders) == pytest.approx(times * one, rel=1e-12)
    other = cm.PureDP(1) if run.relation is cm.Relation.ANY else run
    assert (run + other).rdp(orders) == pytest.approx((other + run).rdp(orders), rel=1e-13)
    finite = one[one < math.inf]
    assert (finite[1:] >= finite[:-1] * (1 - 1e-9)).all()


@settings(max_examples=drawn(2), deadline=None)
@given(combined)
def test_combined_answers(run: cm.Expression) -> None:
    """The best answer is at most that of divergences, and falls with delta; lower ends lie below."""
    few, many = run.epsilon("1e-6"), run.epsilon("1e-3")
    assert many <= few * (1 + 1e-9) <= run.epsilon("1e-6", method="rdp") * (1 + 1e-6)
    found = run.guarantee(delta="1e-3")
    assert found.lower is None or found.lower <= found.epsilon
