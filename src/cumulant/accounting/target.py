"""Targets of a calibration: (epsilon, delta), an advantage, a true positive rate, a mu with a slack, or a risk."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cumulant.accounting.choices import ConversionName, Method
from cumulant.accounting.gaussian_fit import DEFAULT_SLACK, SLACK, mu_with_slack
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.queries import Answers
from cumulant.accounting.risk import KINDS, PRIOR, risk
from cumulant.domains import DELTA, EPSILON, POSITIVE, PROBABILITY, Exact, Number, one_of
from cumulant.errors import InputError

_DECISIVE = 1e-7
"""The part of the target by which an answer in floats must miss it, so that it decides."""

_ZERO = Exact(0)
"""The epsilon at which delta is the advantage."""


@dataclass(frozen=True, slots=True)
class Target:
    """A number that must not be exceeded.

    `quantity` is its name, `at` the delta or false positive rate it is asked at.
    """

    quantity: str
    most: Exact
    at: Exact

    @classmethod
    def read(
        cls,
        epsilon: Number | None,
        delta: Number | None,
        advantage: Number | None,
        tpr: Number | None,
        fpr: Number | None,
        *,
        mu: Number | None = None,
        slack: Number | None = None,
        kind: str | None = None,
        success: Number | None = None,
        prior: Number | None = None,
    ) -> Target:
        """The one target that is given; InputError where there is none, or more than one.

        >>> Target.read(None, None, "0.1", None, None).goal
        'advantage <= 0.1'
        """
        parts = {
            "epsilon": (epsilon, delta),
            "advantage": (advantage,),
            "tpr": (tpr, fpr),
            "mu": (mu, slack),
            "kind": (kind, success, prior),
        }
        given = [name for name, values in parts.items() if any(value is not None for value in values)]
        if given == ["epsilon"] and epsilon is not None and delta is not None:
            return cls("epsilon", EPSILON.check("epsilon", epsilon), DELTA.check("delta", delta))
        if given == ["advantage"] and advantage is not None:
            return cls("advantage", PROBABILITY.check("advantage", advantage), _ZERO)
        if given == ["tpr"] and tpr is not None and fpr is not None:
            most, at = PROBABILITY.check("tpr", tpr), PROBABILITY.check("fpr", fpr)
            if most < at:
                raise InputError(f"tpr={most} must be at least fpr={at}, which guessing has")
            return cls("true positive rate", most, at)
        if given == ["mu"] and mu is not None:
            return cls("mu", POSITIVE.check("mu", mu), SLACK.check("slack", DEFAULT_SLACK if slack is None else slack))
        if given == ["kind"] and kind is not None and success is not None and prior is not None:
            return cls._risk(one_of("kind", kind, KINDS), success, prior)
        raise InputError(
            "give one target: epsilon=… and delta=…, or advantage=…, or tpr=… and fpr=…, or mu=… and slack=…, or "
            "kind='attribute', success=… and prior=…"
        )

    @classmethod
    def _risk(cls, kind: str, success: Number, prior: Number) -> Target:
        """Return the target of an attack's success; InputError where guessing alone succeeds more often."""
        most, at = PROBABILITY.check("success", success), PRIOR.check("prior", prior)
        if most < at:
            raise InputError(f"success={most} must be at least prior={at}, which an attacker has without the release")
        return cls(kind, most, at)

    @property
    def by_statement(self) -> bool:
        """Return True if it is a statement of (epsilon, delta), which every method answers."""
        return self.quantity == "epsilon"

    @property
    def goal(self) -> str:
        """Return the target in words."""
        where = {
            "epsilon": f" at delta = {self.at}",
            "advantage": "",
            "mu": f" at slack {self.at}",
            **dict.fromkeys(KINDS, f" at a prior of {self.at}"),
        }.get(self.quantity, f" at a false positive rate of {self.at}")
        return f"{self.quantity} <= {self.most}{where}"

    def ask(self, run: Answers, method: Method, bound: str | None, conversion: ConversionName | None) -> float:
        """Compute the quantity of the run."""
        if self.quantity == "epsilon":
            return run.epsilon(self.at, method=method, bound=bound, conversion=conversion)
        self._plain(bound, conversion)
        if self.quantity == "advantage":  # (0, advantage)-DP: delta at 0 is the largest difference of the two rates
            return run.delta(_ZERO, method=method)
        if self.quantity == "mu":
            return mu_with_slack(run.record(), self.at, method)
        if self.quantity in KINDS:
            return risk(run.record(), self.quantity, self.at, method).success
        return run.true_positive_rate(self.at, method=method)

    def nearly(self, run: Answers, method: Method, bound: str | None, conversion: ConversionName | None) -> float:
        """Compute the quantity of the run in floats.

        By an array of one number; where that is too close to decide, as `ask` does.
        """
        found, goal = math.nan, float(self.most)
        if self.quantity == "epsilon":
            found = float(run.epsilon([self.at], method=method, bound=bound, conversion=conversion)[0])
        elif self.quantity == "advantage":
            found = float(run.delta([_ZERO], method=method)[0])
        return found if abs(found - goal) > _DECISIVE * goal else self.ask(run, method, bound, conversion)

    def met(self, found: Guarantee) -> bool:
        """Return True if what is proved is no more than the target, as far as it says so."""
        if self.by_statement:
            return found.epsilon <= self.most
        return self.quantity != "advantage" or found.delta <= self.most

    def guarantee(
        self, run: Answers, method: Method, bound: str | None, conversion: ConversionName | None
    ) -> Guarantee:
        """Return the guarantee of the run that was found.

        At this delta, or the delta at epsilon = 0.
        """
        if self.by_statement:
            return run.guarantee(delta=self.at, method=method, bound=bound, conversion=conversion)
        return run.guarantee(epsilon=_ZERO, method=method)

    def _plain(self, bound: str | None, conversion: str | None) -> None:
        if bound is not None or conversion is not None:
            raise InputError(f"{self.quantity} takes no bound and no conversion; they are for epsilon and delta")
