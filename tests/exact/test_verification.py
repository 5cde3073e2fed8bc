"""Answers of the exact layer are checked by a route that shares no code with what found them, or say that none is open."""

import dataclasses
import json
import re
from typing import Any

import pytest

import cumulant as cm
from cumulant.exact import answer, verification
from cumulant.exact.adaptive import theorem_w, theorem_w_line
from cumulant.exact.adaptive.reference_law import propose_reference, reference
from cumulant.exact.adaptive.settings import THEOREM_W
from cumulant.exact.grid import fft
from cumulant.exact.grid import refine as search
from cumulant.exact.grid.refine import Bound
from cumulant.exact.inversion import batch, solver

W = cm.WithoutReplacement
DECAYING = {
    "lattice": cm.Laplace(scale=2) @ cm.Poisson(rate=0.01) * 1000,
    "cone": cm.Gaussian(sigma=5) @ W(rate=0.001) * 600_000,
    "ball": cm.Gaussian(sigma=5, geometry="ball") @ W(rate=0.001) * 600_000,
    "poisson": cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.01) * 1000,
    "mixed": cm.Laplace(scale=1) + cm.Gaussian(sigma=2) * 10 + cm.PureDP("0.2") * 5,
}
WITHOUT_DECAY = {
    "few rounds": cm.Gaussian(sigma=1) @ W(rate=0.001) * 10,
    "losses on a lattice": cm.UnaryEncoding(p="0.6", q="0.4") @ W(rate=0.1) * 50,
    "many losses on a lattice": cm.PureDP("0.01") * 2000,
    "leaking": cm.ApproximateDP("0.1", "1e-8") @ W(rate=0.1) * 40,
    "masses": cm.from_masses(["0.5", "0.3", "0.2"], ["0.2", "0.2", "0.6"]) * 17,  # more than a product takes
}
QUESTIONS: list[dict[str, Any]] = [{"delta": "1e-6"}, {"delta": "0.01"}, {"epsilon": "0.3"}, {"epsilon": "1"}]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
@pytest.mark.parametrize("run", DECAYING)
def test_the_saddle_line_confirms_without_any_lattice(
    monkeypatch: pytest.MonkeyPatch, run: str, question: dict[str, Any]
) -> None:
    found = DECAYING[run].guarantee(**question, method="exact")
    if found.epsilon == 0:
        return
    monkeypatch.setattr(verification, "second_delta", lambda *_: None)

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("this is the code that is to be checked")

    for home, name in ((fft, "compose"), (search, "compose"), (search, "grid_epsilon"), (search, "grid_delta")):
        monkeypatch.setattr(home, name, refused)
    check = found.verify()
    assert check, str(check)
    assert (check.arithmetic, check.quantity, check.independent) == ("saddle line", "delta", True)
    assert check.lower <= check.upper
    assert "along the saddle line" in str(check)
    assert re.search(r"confirmed to \de-0[89] of delta", str(check))
    assert check.upper == pytest.approx(found.delta, rel=0.05)  # the grid costs a thousandth of epsilon
    for wrong in (
        dataclasses.replace(found, epsilon=0.99 * found.epsilon),
        dataclasses.replace(found, delta=0.9 * found.delta),
    ):
        check = wrong.verify()
        assert not check
        assert "does not hold" in str(check)


@pytest.mark.parametrize("run", ["lattice", "cone", "poisson"])
def test_a_mistake_of_the_lattice_is_found_while_it_is_still_there(monkeypatch: pytest.MonkeyPatch, run: str) -> None:
    monkeypatch.setattr(solver, "upper_end", lambda *_: None)
    monkeypatch.setattr(batch, "float_ends", lambda *_: [None])
    for name in ("grid_epsilon", "theorem_b_epsilon"):
        right = getattr(search, name)

        def smaller(*given: Any, right: Any = right, **named: Any) -> Bound:
            found: Bound = right(*given, **named)
            return dataclasses.replace(found, value=0.98 * found.value)

        monkeypatch.setattr(search, name, smaller)
    monkeypatch.setattr(answer, "lower_end", lambda *_: None)
    found = DECAYING[run].guarantee(delta="1e-6", method="exact")
    assert not found.verify()


@pytest.mark.parametrize("run", ["lattice", "cone", "poisson"])
def test_a_mistake_of_the_line_is_found_while_it_is_still_there(monkeypatch: pytest.MonkeyPatch, run: str) -> None:
    right = solver.upper_end

    def smaller(*given: Any) -> Any:
        known = right(*given)
        assert known is not None
        return dataclasses.replace(known[0], value=0.9999 * known[0].value), known[1]

    monkeypatch.setattr(solver, "upper_end", smaller)
    monkeypatch.setattr(answer, "lower_end", lambda *_: None)
    assert not DECAYING[run].guarantee(delta="1e-6", method="exact").verify()


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
@pytest.mark.parametrize("run", WITHOUT_DECAY)
def test_where_the_spectrum_does_not_decay_the_check_says_what_it_is(run: str, question: dict[str, Any]) -> None:
    found = WITHOUT_DECAY[run].guarantee(**question, method="exact")
    if not (0 < found.epsilon < float("inf") and 0 < found.delta < 1):
        return
    check = found.verify()
    assert check, str(check)
    again = "another order and period" in check.note  # losses on a lattice need no decay
    assert again is (found.rigour == "proved" and check.arithmetic == "balls")
    assert check.quantity == ("epsilon" if found.asked == "delta" and not again else "delta")
    if check.arithmetic == "balls":
        assert again or "Rényi bound alone" in check.note
        assert check.independent
    else:
        assert not check.independent
        assert "by the same code" in str(check)
        assert "no independent route" in check.note
    name = "epsilon" if found.asked == "delta" else "delta"
    smaller = {name: getattr(found, name) * (0.99 if name == "epsilon" else 0.9)}
    assert not dataclasses.replace(found, **smaller).verify()


@pytest.mark.parametrize("run", [cm.Gaussian(sigma=1), cm.Laplace(scale=1) @ W(rate="1/3"), cm.Gaussian(sigma=9) * 50])
def test_closed_forms_are_evaluated_at_four_times_the_bits(run: cm.Expression) -> None:
    for found in (run.guarantee(delta="1e-6"), run.guarantee(epsilon="0.1")):
        assert found.route == "closed form"
        check = found.verify()
        assert check, str(check)
        assert (check.arithmetic, check.precision, check.quantity) == ("balls", 1024, "delta")
        assert check.lower <= check.upper <= check.delta
        assert check.upper <= check.lower * (1 + 1e-15)
        assert not dataclasses.replace(found, epsilon=found.epsilon * (1 - 1e-9)).verify()


def test_what_holds_for_everything_needs_no_check() -> None:
    found = (cm.ApproximateDP(1, "1e-5") * 3).guarantee(delta="1e-5", method="exact")
    assert found.epsilon == float("inf")
    assert found.verify().arithmetic == "none"
    assert not found.verify().independent


# ---- what was proved along the line


PROVED: dict[str, tuple[cm.Expression, str]] = {
    "profile": (cm.Gaussian(sigma=1) @ cm.Poisson(rate="256/60000") * 23_400, "1e-5"),
    "cone": (cm.Gaussian(sigma=5) @ W(rate=0.001) * 600_000, "1e-8"),
    "lattice of losses": (cm.RandomizedResponse(p="0.6") @ cm.Poisson(rate=0.1) * 400, "1e-6"),
    "leaks": (cm.ApproximateDP("0.1", "1e-9") * 50, "1e-6"),
    "smoothed": (cm.ApproximateDP("0.5", "1e-9") @ cm.Poisson(rate="0.1") * 20, "1e-6"),
}


@pytest.mark.parametrize("accuracy", ["1e-3", "1e-12"])
@pytest.mark.parametrize("run", PROVED)
def test_a_proof_is_proved_again_to_its_last_digits(run: str, accuracy: str) -> None:
    what, delta = PROVED[run]
    if run == "smoothed" and accuracy != "1e-3":
        return  # out of reach
    found = what.guarantee(delta=delta, method="exact", accuracy=accuracy)
    assert found.rigour == "proved"
    check = found.verify()
    assert check, str(check)
    assert (check.arithmetic, check.independent, check.note) == (
        "balls",
        True,
        "along a line of another order and period",
    )
    assert check.upper <= float(delta)
    # what the first line has left is all that lies between them
    assert check.upper >= float(delta) * (1 - (1e-3 if run == "smoothed" else 1e-7 if accuracy == "1e-3" else 1e-11))
    less = {"1e-3": 1e-6, "1e-12": 1e-10}[accuracy]
    if run != "smoothed":
        wrong = dataclasses.replace(found, epsilon=found.epsilon * (1 - less)).verify()
        assert not wrong or wrong.arithmetic == "saddle line"
        if run != "cone":  # a bound of Theorem B may always be improved upon
            assert not wrong
            assert wrong.lower > float(delta)


# ---- Theorem W


ORDERS: dict[str, tuple[cm.Expression, dict[str, Any]]] = {
    "PureDP": (cm.PureDP(1) @ W(rate="0.001") * 600_000, {"delta": "1e-8"}),
    "RandomizedResponse": (cm.RandomizedResponse(p="0.9") @ W(rate="0.001") * 600_000, {"delta": "1e-8"}),
    "Laplace": (cm.Laplace(scale=2) @ W(rate="0.01") * 3000, {"delta": "1e-6"}),
    "a delta": (cm.Laplace(scale="0.5") @ W(rate="0.001") * 1000, {"epsilon": "0.3"}),
}


@pytest.mark.parametrize("run", ORDERS)
def test_theorem_w_is_proved_again_by_other_laws(monkeypatch: pytest.MonkeyPatch, run: str) -> None:
    """With none of the first reference laws, and what is less by half a percent of epsilon is not confirmed."""
    what, question = ORDERS[run]
    found = what.guarantee(**question)
    assert found.route == "order"
    sizes = set()

    def noted(demand: Any, order: float, lam: float, cells: int, count: int) -> Any:
        sizes.add((cells, count))
        return reference(demand, order, lam, cells, count)

    monkeypatch.setattr(theorem_w, "reference", noted)
    check = found.verify()
    assert check, str(check)
    assert (check.arithmetic, check.quantity, check.independent) == ("balls", "delta", True)
    assert "Theorem W" in check.note
    assert THEOREM_W.second_reference in sizes or run == "RandomizedResponse"
    assert 0.9 * found.delta <= check.upper <= found.delta
    if run in ("RandomizedResponse", "Laplace"):
        assert not dataclasses.replace(found, epsilon=0.995 * found.epsilon).verify()


def test_a_mistake_of_theorem_w_is_found_while_it_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its epsilon smaller by 0.2 %; and a guarantee that was stored and changed."""
    what, question = ORDERS["Laplace"]
    right = theorem_w_line.upper_end

    def smaller(*given: Any) -> Any:
        known = right(*given)
        assert known is not None
        return dataclasses.replace(known, value=0.998 * known.value)

    monkeypatch.setattr(theorem_w_line, "upper_end", smaller)
    monkeypatch.setattr(answer, "lower_end", lambda *_: None)
    found = what.guarantee(delta="1.3e-6")  # plans are remembered
    assert found.route == "order"
    monkeypatch.undo()
    assert not found.verify()
    state = what.guarantee(**question).to_dict()
    assert cm.Guarantee.from_json(json.dumps(state)).verify()
    assert not cm.Guarantee.from_json(json.dumps(state | {"epsilon": 0.99 * state["epsilon"]})).verify()
    assert not cm.Guarantee.from_json(json.dumps(state).replace("scale=2", "scale=1.9")).verify()


def test_a_law_that_is_not_proved_to_dominate_confirms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    what, question = ORDERS["Laplace"]
    found = what.guarantee(**question)
    monkeypatch.setattr(theorem_w, "reference", propose_reference)
    check = found.verify()
    assert "Theorem W" not in check.note
    assert not check.independent
