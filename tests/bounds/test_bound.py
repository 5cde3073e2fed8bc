"""Hypotheses and rate 1, which every row leaves to one function, and `best`, the fold of the rows of a table."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.bounds.bound import Bound, amplified, best, never, nothing, over
from cumulant.bounds.poisson import POISSON
from cumulant.bounds.without_replacement import WITHOUT_REPLACEMENT
from cumulant.curves.closed_form import Concentrated, Response
from cumulant.curves.curve import Curve
from cumulant.errors import HypothesisError
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.pair import Pair
from cumulant.pairs.response import ResponsePair

ORDERS = np.array([1.0, 1.5, 2.0, 30.0, np.inf])
PAIRS = (GaussianPair(Fraction(1, 2)), LaplacePair(Fraction(1)), ResponsePair(p=Fraction(3, 4)))
TABLES = {"without replacement": WITHOUT_REPLACEMENT, "Poisson": POISSON}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: type(pair).__name__)
def test_rate_one_changes_nothing(pair: Pair, table: str) -> None:
    rows = TABLES[table]
    for name in rows:
        curve = amplified(rows, name, pair.curve(), pair, Fraction(1), "it")
        np.testing.assert_array_equal(curve.rdp(ORDERS), pair.curve().rdp(ORDERS), name)


@pytest.mark.parametrize(
    ("name", "pair", "reason"),
    [
        ("profile", None, "dominating pair"),
        ("lower", None, "dominating pair"),
        ("lower", GaussianPair(Fraction(10**5)), "noise of at least 1/10000"),
        ("one-bit", GaussianPair(Fraction(1)), "one bit"),
        ("gaussian-ball", GaussianPair(Fraction(1)), "ball"),
        ("gaussian-ball", LaplacePair(Fraction(1)), "ball"),
        ("gaussian-ball", None, "ball"),
        ("gaussian-diameter", LaplacePair(Fraction(1)), "Gaussian noise"),
        ("pure-extras", GaussianPair(Fraction(1)), "pure DP"),
        ("lemma3", GaussianPair(Fraction(1)), "pure DP"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Pair) else str(value),
)
def test_a_row_is_used_only_where_its_hypotheses_hold(name: str, pair: Pair | None, reason: str) -> None:
    base = Concentrated(Fraction(1)) if pair is None else pair.curve()
    with pytest.raises(HypothesisError, match=f"{name} does not apply to it: .*{reason}"):
        amplified(WITHOUT_REPLACEMENT, name, base, pair, Fraction(1, 2), "it")


@pytest.mark.parametrize("table", TABLES)
def test_slack_is_left_to_the_rows_that_are_proved_for_it(table: str) -> None:
    promise, rows = Response(epsilon=Fraction(1), leak=Fraction(1, 100)), TABLES[table]
    proved = set()
    for name in rows:
        try:
            curve = amplified(rows, name, promise, ResponsePair(epsilon=Fraction(1)), Fraction(1, 10), "it")
        except HypothesisError:
            continue
        proved.add(name)
        assert curve.slack() == Fraction(1, 1000)
    assert proved == {"caps", "lemma3", "best"} | ({"pure-response"} if table == "Poisson" else set())


# ---- the fold


class _Halved(Curve):
    """Half of a curve: no theorem, but the smallest row wherever it takes part."""

    def __init__(self, base: Curve) -> None:
        self.base = base

    def _cgf(self, lam, on):  # type: ignore[no-untyped-def]
        return self.base.cgf(lam, on) * on.number(Fraction(1, 1000))


def _mine(**options: object) -> Bound:
    return Bound("mine", "s", "a", "c", lambda base, pair, rate: _Halved(base), nothing, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("base", [cm.Gaussian(sigma=2), cm.PureDP(1), cm.ApproximateDP(1, "1e-6")], ids=str)
def test_a_new_row_of_a_table_is_used_by_best(base: cm.Mechanism, table: str) -> None:
    curve, pair, rate = base.curve("best"), base.pair(), Fraction(1, 2)
    before = best(TABLES[table], curve, pair, rate)
    after = best({**TABLES[table], "mine": _mine()}, curve, pair, rate)
    assert before.winner(4.0) in TABLES[table]
    assert after.winner(4.0) == "mine"
    np.testing.assert_array_equal(after.cgf([3.0]), curve.cgf([3.0]) / 1000)
    for row in (
        _mine(worthless=lambda base, pair: True),
        _mine(upper=False),
        Bound("mine", "s", "a", "c", lambda base, pair, rate: _Halved(base), lambda base, pair: "it does not hold"),
    ):
        kept = best({**TABLES[table], "mine": row}, curve, pair, rate)
        np.testing.assert_array_equal(kept.rdp(ORDERS), before.rdp(ORDERS))


def test_a_dominated_row_is_not_evaluated() -> None:
    def unexpected(base: Curve, pair: Pair | None, rate: Fraction) -> Curve:
        raise AssertionError("this row is dominated")

    rows = {
        "loose": Bound("loose", "s", "a", "c", unexpected, nothing),
        "mine": _mine(dominates=over("loose"), worthless=never),
    }
    base = Concentrated(Fraction(1))
    assert best(rows, base, None, Fraction(1, 2)).winner(2.0) == "mine"
    with pytest.raises(HypothesisError, match="no bound applies to this mechanism"):
        best({}, base, None, Fraction(1, 2))


def test_of_rows_that_agree_the_last_is_named_and_infinity_is_lemma_3() -> None:
    base = Response(epsilon=Fraction(1))
    row = _mine()
    rows = {name: Bound(name, "s", "a", "c", row.curve, nothing) for name in ("first", "second")}
    found = best(rows, base, None, Fraction(1, 2))
    assert found.winner(3.0) == "second"
    assert found.winner(np.inf) == "second"  # this table does not know Lemma 3
    assert best(POISSON, base, None, Fraction(1, 2)).winner(np.inf) == "lemma3"


def test_a_chord_below_all_rows_has_no_winner() -> None:
    """E-14: at rate 0.5 Theorem 9 is no CGF, and its projection lies below it."""
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.5)
    rows = {"theorem9": WITHOUT_REPLACEMENT["theorem9"]}
    found, literal = best(rows, cm.Gaussian(sigma=5).curve("best"), None, Fraction(1, 2)), run.curve("theorem9")
    orders = np.linspace(1.5, 60, 100)
    below = found.rdp(orders) < (1 - 1e-6) * literal.rdp(orders)
    assert below.any()
    assert not below.all()
    for order, chorded in zip(orders.tolist(), below.tolist(), strict=True):
        assert found.winner(order) == ("" if chorded else "theorem9"), order
