"""Extreme numbers: every registered mechanism, sample and bound answers with a number or says why not.

Nothing but a CumulantError comes out, no answer is NaN or negative, and what is claimed of a sample is neither above what
is claimed without it nor below the lower bound. Parameters are drawn from the declared domains, so that a new mechanism is
tested without a new line; a computation that does not end shows as a test that does not.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.domains import POSITIVE, Domain, Several
from cumulant.mechanisms.mechanism import MECHANISMS
from tests import effort
from tests.laws.strategies import RATED, WHOLE_RUNS

ORDERS = [1, 1 + 1e-9, 1.5, 2, 1e3, 1e6, 1e9, 1e17, 1e50, 1e100, 1e300, math.inf]
SIZES = [Fraction(10) ** exponent for exponent in (-300, -100, -12, -3, 0, 6, 58, 300)]
RATES = [Fraction(rate) for rate in ("1e-300", "1e-12", "1e-3", "1/2", "0.999999999999", "1")]


def extreme(domain: Domain, draw: random.Random) -> Fraction:
    low = Fraction(0) if domain.low is None else domain.low
    candidates = [low, *SIZES, *(low + size for size in SIZES)]
    if domain.high is not None:
        candidates += [domain.high, *(domain.high - size for size in SIZES)]
    return draw.choice([value for value in candidates if value in domain])


def masses(draw: random.Random) -> list[Fraction]:
    share = draw.choice([Fraction(0), Fraction(1, 10**300), Fraction(1, 10**12), Fraction(1, 3), Fraction(1, 2)])
    return draw.sample([share, 1 - share, Fraction(0)], 3)


def extreme_parameters(kind: type[cm.Mechanism], draw: random.Random) -> dict[str, Any]:
    if kind.name() == "from_masses":
        return {"p": masses(draw), "q": masses(draw)}
    if kind.name() == "LocalRandomizer":
        return {"inputs": 2, "masses": [*masses(draw), *masses(draw)]}
    if kind.name() == "GaussianMixture":
        shifts = [extreme(POSITIVE, draw), Fraction(0), extreme(POSITIVE, draw)]
        return {"sigma": extreme(POSITIVE, draw), "shifts": shifts, "weights": masses(draw)}
    if kind.name() == "from_rdp_points":
        size = draw.choice(SIZES)
        return {"orders": [2, 10, 10**6], "values": [size, size, size]}
    return {
        name: [extreme(domain.each, draw) for _ in range(3)] if isinstance(domain, Several) else extreme(domain, draw)
        for name, domain in kind.domains.items()
    }


def drawn(name: str) -> Iterator[tuple[cm.Expression, cm.Expression, random.Random]]:
    """Mechanisms with extreme parameters, each with itself on an extreme sample, and what draws the questions."""
    draw = random.Random(name)
    for _ in range(effort.drawn(2)):
        try:
            base = MECHANISMS[name](**extreme_parameters(MECHANISMS[name], draw))
            yield base, base @ RATED[draw.choice(sorted(RATED))](rate=draw.choice(RATES)), draw
        except cm.CumulantError:
            continue


def answer(question: Callable[[], Any]) -> Any:
    """What is answered, checked; None if the question is refused."""
    try:
        found = question()
    except cm.CumulantError:
        return None
    assert not np.isnan(found).any()
    assert (np.asarray(found) >= 0).all()
    return found


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - WHOLE_RUNS))
def test_curves_at_extreme_orders(name: str) -> None:
    for base, run, draw in drawn(name):
        whole, best = answer(lambda: base.rdp(ORDERS)), answer(lambda: run.rdp(ORDERS))  # noqa: B023
        least = answer(lambda: run.rdp(ORDERS, bound="lower"))  # noqa: B023
        if whole is not None and best is not None:
            # elsewhere K itself overflows, or is too small for more than a chord
            carried = (whole < 1e300 / np.array(ORDERS)) & (np.array(ORDERS) != 1 + 1e-9)
            assert (best <= whole * (1 + 1e-9) + 1e-290)[carried].all(), run
        if least is not None and best is not None:
            assert (least <= best * (1 + 1e-9)).all(), run
        order, bound = draw.choice(ORDERS), draw.choice(sorted(cm.BOUNDS))
        answer(lambda: run.rdp(ORDERS, bound=bound))  # noqa: B023
        answer(lambda: run.rdp(order, bound=bound))  # noqa: B023
        answer(lambda: run.cgf(order, bound=bound))  # noqa: B023
        answer(lambda: run.gap(order, bound=bound))  # noqa: B023
        answer(lambda: run.curve(bound).projected().rdp(np.array([order])))  # noqa: B023
        answer(run.kl)
        answer(run.pure)
