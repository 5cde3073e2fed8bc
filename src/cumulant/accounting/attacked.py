"""Questions about what ran that an attacker would ask: the trade-off, the privacy loss, Bayes risk, Gaussian privacy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cumulant.accounting.parts import Ran
from cumulant.accounting.question import DEFAULT_METHOD
from cumulant.curves.memory import question
from cumulant.domains import Number

if TYPE_CHECKING:
    from cumulant.accounting.attack import TradeOffCurve
    from cumulant.accounting.privacy_loss import PrivacyLoss

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Attacked(ABC):
    """Something that can be attacked, given what it is made of."""

    __slots__ = ()

    @abstractmethod
    def ran(self) -> Ran:
        """What ran, frozen as it is now: all that a question needs to know."""

    @question()
    def trade_off(self, fpr: Iterable[Number] | None = None, method: str = DEFAULT_METHOD) -> TradeOffCurve:
        """The best attack: the largest true positive rate at each false positive rate; see `attack.trade_off`."""
        from cumulant.accounting import attack

        return attack.trade_off(self.ran(), fpr, method)

    @overload
    def true_positive_rate(self, fpr: Number, method: str = ...) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def true_positive_rate(self, fpr: Iterable[Number], method: str = ...) -> Floats: ...
    @question()
    def true_positive_rate(self, fpr: Number | Iterable[Number], method: str = DEFAULT_METHOD) -> float | Floats:
        """The largest part of the members that an attack finds which has this false positive rate, one or several.

        >>> import cumulant as cm
        >>> cm.PureDP(1).true_positive_rate(0.01)
        0.02719
        """
        from cumulant.accounting import attack

        return attack.true_positive_rate(self.ran(), fpr, method)

    @property
    @question()
    def advantage(self) -> float:
        """The largest difference of true and false positive rate that any attack has."""
        from cumulant.accounting import attack

        return attack.advantage(self.ran())

    @question()
    def bayes_risk(self, prior: Number = "1/2") -> float:
        """The least part of wrong guesses of any attack on a record that is a member with this probability, rounded down.

        It is prior (1 - delta(log((1 - prior) / prior))), the smallest sum of both kinds of errors.

        >>> import cumulant as cm
        >>> cm.PureDP(1).bayes_risk(), cm.PureDP(1).bayes_risk(prior=0.01)  # 1 / (1 + e), and who always says no
        (0.268941, 0.01)
        """
        from cumulant.accounting import attack

        return attack.bayes_risk(self.ran(), prior)

    @property
    @question()
    def gaussian_mu(self) -> float:
        """A mu for which it is mu-GDP, rounded up: every attack is one on N(mu, 1) against N(0, 1); +inf if none is known.

        Gaussian noise has its shift, pure epsilon 2 Phi^-1(e^epsilon / (1 + e^epsilon)), a sample what runs on it, and squares
        add. It is the strict one: the trade-off holds at every epsilon, without a failure probability, so that samples of
        Gaussian noise gain nothing. For DP-SGD it is much larger than the mu of central-limit theorems, which hold in the limit
        only, or with slack. Compare runs by `epsilon` or `true_positive_rate` instead.

        >>> import cumulant as cm
        >>> (cm.Gaussian(sigma=2) * 4).gaussian_mu, cm.ZeroConcentrated(rho=1).gaussian_mu
        (1.0, inf)
        >>> (
        ...     cm.Gaussian(sigma="1.1") @ cm.Poisson(rate="0.01") * 1000
        ... ).gaussian_mu  # sqrt(1000) / 1.1, as if not sampled
        28.748
        """
        from cumulant.accounting import attack

        return attack.gaussian(self.ran())

    @question()
    def privacy_loss(self, direction: str = "both") -> PrivacyLoss:
        """The privacy loss of neighbours: tails, quantiles and hockey-stick divergences of one direction or of both.

        >>> import cumulant as cm
        >>> run = cm.Gaussian(sigma=2) @ cm.Poisson(rate=0.1) * 10
        >>> run.privacy_loss("add").hockey_stick(1) < run.privacy_loss("remove").hockey_stick(1)
        True
        """
        from cumulant.accounting.privacy_loss import PrivacyLoss

        return PrivacyLoss.of(self.ran(), direction)
