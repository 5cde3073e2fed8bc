"""Hypothesis strategies read off the declared domains, so that a new mechanism is tested without a new line."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

import cumulant as cm
from cumulant.domains import Domain, Less, Several
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.sampling.rated import Rated
from cumulant.sampling.scheme import SCHEMES


def numbers(domain: Domain) -> st.SearchStrategy[Fraction]:
    """Exact numbers of a domain, from tiny to large, ends included where they are closed."""
    if domain.integer:
        return st.integers(int(domain.low or 1), 10**6).map(Fraction)
    low = Fraction(-1000) if domain.low is None else domain.low
    if domain.high is None:
        return st.builds(lambda m, e: low + Fraction(m) * Fraction(10) ** e, st.integers(1, 99), st.integers(-4, 2))
    share = st.builds(lambda m, e: Fraction(m, 100) * Fraction(1, 10) ** e, st.integers(1, 99), st.integers(0, 4))
    return share.map(lambda x: low + x * (domain.high - low) if domain.high is not None else x)


def masses(size: int) -> st.SearchStrategy[list[Fraction]]:
    parts = st.lists(st.integers(1, 1000), min_size=size, max_size=size)
    return parts.map(lambda xs: [Fraction(x, sum(xs)) for x in xs])


def parameters(kind: type[cm.Mechanism]) -> st.SearchStrategy[dict[str, Any]]:
    if kind.name() == "from_masses":
        return st.integers(2, 4).flatmap(lambda n: st.fixed_dictionaries({"p": masses(n), "q": masses(n)}))
    if kind.name() == "LocalRandomizer":
        laws = st.lists(masses(3), min_size=2, max_size=4)
        return laws.map(lambda xs: {"inputs": len(xs), "masses": [mass for law in xs for mass in law]})
    if kind.name() == "from_rdp_points":
        steps = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=1, max_size=5)
        return steps.map(
            lambda xs: {
                "orders": [1 + Fraction(sum(a for a, _ in xs[: i + 1]), 7) for i in range(len(xs))],
                "values": [Fraction(sum(b for _, b in xs[: i + 1]), 40) for i in range(len(xs))],
            }
        )
    if kind.name() == "PrivacyProfile":
        points = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 8), st.integers(1, 9)), min_size=1, max_size=4)
        return points.map(
            lambda xs: {
                "epsilons": [Fraction(x, 100) for x, _, _ in xs],
                "deltas": [Fraction(m, 10) / 10**e for _, e, m in xs],
            }
        )
    if kind.name() == "TradeOff":
        leaks, odds = (
            st.integers(0, 50).map(lambda x: Fraction(x, 100)),
            st.integers(1, 49).map(lambda x: Fraction(x, 100)),
        )
        return st.builds(
            lambda s, x: {"alphas": [0, (1 - s) * x, 1 - s], "betas": [1 - s, (1 - s) * x, 0]}, leaks, odds
        )
    if kind.name() == "SparseVector":
        scales = st.integers(5, 5000).map(lambda x: Fraction(x, 10))
        return st.fixed_dictionaries({"threshold": scales, "query": scales, "hits": st.integers(1, 5)})
    if kind.name() == "DiscreteGaussian":
        sigma = st.integers(2, 300).map(lambda x: Fraction(x, 10))
        return st.fixed_dictionaries(
            {"sigma": sigma, "sensitivity": st.integers(1, 3), "dimension": st.sampled_from([None, 1])}
        )
    if kind.name() == "GaussianMixture":
        sigma, shifts = (
            st.integers(5, 100).map(lambda x: Fraction(x, 10)),
            st.lists(st.integers(0, 5), min_size=3, max_size=3),
        )
        return st.fixed_dictionaries({"sigma": sigma, "shifts": shifts, "weights": masses(3)})
    if kind.name() == "MatrixMechanism":
        sigma, bands = (
            st.integers(5, 500).map(lambda x: Fraction(x, 10)),
            st.lists(st.integers(-3, 9), min_size=0, max_size=3),
        )
        return st.builds(
            lambda s, rest, n: {"bands": [2, *rest], "steps": n, "sigma": s}, sigma, bands, st.integers(1, 10**6)
        )
    if kind.name() == "Skellam":
        variance = st.integers(1, 900).map(lambda x: Fraction(x, 10))
        return st.fixed_dictionaries(
            {"variance": variance, "sensitivity": st.integers(1, 3), "dimension": st.sampled_from([None, 1])}
        )
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for name, domain in kind.domains.items():
        if isinstance(domain, Several):
            fields[name] = st.lists(numbers(domain.each), min_size=2, max_size=4)
        else:
            fields[name] = numbers(domain)
    return st.fixed_dictionaries(fields).filter(lambda given: all(holds(each, given) for each in kind.joint))


def holds(constraint: Less, given: dict[str, Any]) -> bool:
    try:
        constraint.check(given)
    except cm.InputError:
        return False
    return True


WHOLE_RUNS = {"MatrixMechanism"}
"""Mechanisms that are refused on samples; tests/mechanisms/test_matrix_mechanism.py asks them everything."""

ADD_REMOVE_ALONE = {"PartitionSelection"}
"""Stated for add/remove neighbours: sums with posteriors, which are replace-one, are refused. test_questions asks it."""

mechanisms: st.SearchStrategy[cm.Mechanism] = st.sampled_from(
    sorted(set(MECHANISMS) - WHOLE_RUNS - ADD_REMOVE_ALONE)
).flatmap(lambda name: parameters(MECHANISMS[name]).map(lambda given: MECHANISMS[name](**given)))
rates = st.builds(lambda m, e: Fraction(m, 10**e), st.integers(1, 9), st.integers(1, 6))
RATED = {name: scheme for name, scheme in SCHEMES.items() if issubclass(scheme, Rated)}
"""Every scheme with a rate, by name."""

schemes: st.SearchStrategy[type[Rated]] = st.sampled_from(sorted(RATED)).map(RATED.__getitem__)


def fitting(scheme: type[Rated]) -> st.SearchStrategy[cm.Mechanism]:
    """Mechanisms that may run on such a sample."""
    return mechanisms.filter(lambda m: m.relation in (cm.Relation.ANY, scheme.relation))


def sampled_by(scheme: type[Rated]) -> st.SearchStrategy[cm.Expression]:
    """Mechanisms on one sample of this kind."""
    return st.builds(lambda m, rate: m @ scheme(rate=rate), fitting(scheme), rates)


def expressions_with(scheme: type[Rated]) -> st.SearchStrategy[cm.Expression]:
    """Runs whose samples are all of this kind."""
    fit, drawn = fitting(scheme), sampled_by(scheme)
    return st.one_of(
        fit,
        drawn,
        st.builds(lambda a, k, b: a * k + b, drawn, st.integers(1, 1000), fit),
        st.builds(lambda a, b, r: (a + b * 2) @ scheme(rate=r) * 3, fit, fit, rates),
    )


sampled = schemes.flatmap(sampled_by)
expressions = schemes.flatmap(expressions_with)
