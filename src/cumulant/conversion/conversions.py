"""From K at one order to (epsilon, delta): one class per conversion, listed in one table.

a = lambda + 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from cumulant.errors import InputError, shown
from cumulant.numerics.arithmetic import Arithmetic


class Conversion(ABC):
    """epsilon(lam, K, log delta) and log_delta(lam, K, epsilon), upper bounds at every lam > 0."""

    citation: str

    @property
    def delta_citation(self) -> str:
        """The citation for delta at a given epsilon."""
        return self.citation

    @abstractmethod
    def correction(self, lam: Any, on: Arithmetic) -> Any:
        """c(lambda) in: log delta = K(lambda) - lambda epsilon + c(lambda)."""

    def epsilon(self, lam: Any, cgf: Any, log_delta: Any, on: Arithmetic) -> Any:
        return (cgf - log_delta + self.correction(lam, on)) / lam

    def log_delta(self, lam: Any, cgf: Any, epsilon: Any, on: Arithmetic) -> Any:
        return cgf - lam * epsilon + self.correction(lam, on)


class Classic(Conversion):
    """Lemma 6: eq. (3) for epsilon and eq. (4) for delta.

    epsilon = (K(lambda) + log(1/delta)) / lambda and delta = e^{K(lambda) - lambda epsilon}.
    """

    citation = "eq. (3) of the paper"
    delta_citation = "eq. (4) of the paper"

    def correction(self, lam: Any, on: Arithmetic) -> Any:
        return lam * 0


class CanonneKamathSteinke(Conversion):
    """epsilon = rdp(a) + log((a-1)/a) - (log delta + log a) / (a-1).

    It is smaller than eq. (3) at every order.
    """

    citation = "Canonne, Kamath, Steinke 2020, Proposition 12"

    def correction(self, lam: Any, on: Arithmetic) -> Any:
        # lambda log(lambda / a) - log a
        return -lam * on.log1p(1 / lam) - on.log1p(lam)


CONVERSIONS: dict[str, Conversion] = {"classic": Classic(), "cks": CanonneKamathSteinke()}
"""Every conversion by its name."""


def conversion(name: str) -> Conversion:
    """The conversion of this name.

    >>> conversion("classic").citation
    'eq. (3) of the paper'
    """
    try:
        return CONVERSIONS[name]
    except (KeyError, TypeError):
        raise InputError(f"conversion={shown(name)} is unknown; choose one of {', '.join(CONVERSIONS)}") from None
