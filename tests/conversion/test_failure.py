"""A failure is data: its reason decides, its sentence is only shown."""

import pytest

import cumulant as cm
from cumulant.accounting.answer import answer
from cumulant.accounting.question import Question
from cumulant.accounting.rounds import rounds_of
from cumulant.conversion.failure import Failure, Reason
from cumulant.domains import Exact


@pytest.mark.parametrize("reason", Reason)
def test_every_sentence_tells_the_detail_if_it_asks_for_one(reason: Reason) -> None:
    found = Failure(reason, "that").sentence
    assert "{" not in found
    assert "that" in found or "{detail}" not in reason.value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ZeroConcentrated(rho=1/50)", Reason.CURVE_ONLY),
        ("Laplace(scale=2) @ Poisson(rate=0.1) * 2000000000", Reason.TOO_MANY_ROUNDS),
    ],
)
def test_rounds_say_why_they_are_not_composed(text: str, reason: Reason) -> None:
    found, failure = rounds_of(cm.parse(text).record())
    assert found is None
    assert failure is not None
    assert failure.reason is reason


def test_an_answer_keeps_its_failure_and_a_guarantee_its_sentence() -> None:
    run = cm.ZeroConcentrated(rho="1/50")
    question = Question.parse_query("best", None, None, Exact("1e-3"), "delta").with_value(Exact("1e-6"))
    found = answer(run.record(), question)
    assert found.failure == Failure(Reason.CURVE_ONLY, str(run))
    assert run.guarantee(delta="1e-6").note == found.note == found.failure.sentence
    assert cm.Guarantee.from_json(run.guarantee(delta="1e-6").to_json()).note == found.note
