"""Descent with a budget for every record: what is refused before the first step; tests/integrations runs it on torch."""

from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.training import IndividualBudget, PoissonSampler, train_with_individual_budget

PLAN: dict[str, Any] = {"records": 4, "epsilon": 2, "delta": "1e-6", "noise_multiplier": 9, "levels": 4}
SAMPLED = IndividualBudget(**PLAN, rate="1/10")
WHOLE = IndividualBudget(**PLAN, rate=None)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"budget": 3}, "IndividualBudget"),
        ({"records": (np.zeros(3),)}, "for 4 records"),
        ({"sampler": None}, "PoissonSampler"),
        ({"sampler": PoissonSampler(population=4, rate="1/5", steps=5)}, "the rate 1/10"),
        ({"sampler": PoissonSampler(population=5, rate="1/10", steps=5)}, "from 5 records"),
        ({"budget": WHOLE}, "sampler=None"),
        ({"sampler": PoissonSampler(4, "1/10", 5, bytes(32), rank=1, world=2)}, "one of 2 slices"),
        ({"steps": 6}, "at most the 5 steps"),
        ({"steps": 0}, "steps"),
        ({"divisor": 0}, "divisor"),
        ({"learning_rate": "much"}, "learning_rate"),
    ],
)
def test_bad_input_is_refused_before_the_first_step(changed: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {
        "records": (np.zeros(4),),
        "budget": SAMPLED,
        "sampler": PoissonSampler(population=4, rate="1/10", steps=5),
        "steps": 5,
        "learning_rate": 1,
        "divisor": 10,
    }
    with pytest.raises(cm.InputError, match=said):
        train_with_individual_budget(lambda weights, x: x, None, **(given | changed))
    assert (SAMPLED._totals == 0).all()
