"""The amplification bounds: real orders of the sampled Gaussian, every bound up to order 256, one very large order."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import peers
from cases import EXPECTED, RATE, agreement, exact, fresh
from measure import Comparison, Fact, LeftOut, timed
from peers import GOOGLE_ORDERS, Floats, Noise

import cumulant as cm

GAUSSIAN = Noise("Gaussian", 5.0, RATE)


def real_orders(quick: bool) -> Iterator[Comparison | LeftOut]:
    """The Poisson-sampled Gaussian, which is also what sampling without replacement costs for values in a ball."""
    work = "The sampled Gaussian, sigma 5, rate 0.001, at 156 real orders"
    if "poisson" not in cm.BOUNDS:
        yield LeftOut(work, "this version has no bound 'poisson'")
        return

    def ours(shift: int) -> Floats:
        sigma = Decimal(str(GAUSSIAN.parameter)) + Decimal(f"{shift}e-11")
        return (cm.Gaussian(sigma=sigma) @ cm.Poisson(rate=str(RATE))).rdp(GOOGLE_ORDERS, bound="poisson")

    repetitions = 3 if quick else 11
    timings = [timed("dp_accounting", lambda _: peers.google_poisson_curve(GAUSSIAN, GOOGLE_ORDERS), repetitions)]
    value = ours(0)
    lines = [agreement("dp_accounting (Poisson)", peers.google_poisson_curve(GAUSSIAN, GOOGLE_ORDERS), value)]
    if missing := peers.opacus_missing():
        lines.append(missing)
    else:
        timings.append(timed("Opacus", lambda _: peers.opacus_poisson_curve(GAUSSIAN, GOOGLE_ORDERS), repetitions))
        lines.append(agreement("Opacus (Poisson)", peers.opacus_poisson_curve(GAUSSIAN, GOOGLE_ORDERS), value))
    yield Comparison(work, timed("cumulant", lambda i: ours(i + 1), repetitions), tuple(timings), tuple(lines))


def every_bound(quick: bool) -> Iterator[Comparison]:
    """bound="best" against the tight bounds of the peers, which both stop at their forward differences."""
    top = 64 if quick else 256
    orders = range(2, top + 1)
    google = peers.google_curve(GAUSSIAN, orders)
    autodp = peers.autodp_curve(GAUSSIAN, orders, tight=True)
    ours = exact(GAUSSIAN).rdp(orders)
    yield Comparison(
        f"Every bound of the Gaussian without replacement, sigma 5, rate 0.001, orders 2 to {top}",
        timed("cumulant", lambda _: fresh(GAUSSIAN).rdp(orders), 3 if quick else 11),
        (
            timed("dp_accounting", lambda _: peers.google_curve(GAUSSIAN, orders), 1),
            timed(
                "autodp",
                lambda _: peers.autodp_curve(GAUSSIAN, orders, tight=True),
                1,
                "Theorem 27 up to order 100 only",
            ),
        ),
        (agreement("dp_accounting", google, ours), agreement("autodp", autodp, ours)),
        EXPECTED,
    )


def large_order(quick: bool) -> Iterator[Fact]:
    """One question at order 1e7, counted in calls of the user's function."""
    for bound in ("theorem9", "best"):
        asked: list[float] = []

        def rdp(order: float, asked: list[float] = asked) -> float:
            asked.append(order)
            return order / 50

        step = cm.from_rdp(rdp=rdp, name="counted") @ cm.WithoutReplacement(rate=str(RATE))
        value = step.rdp(1e7, bound=bound)
        closed = cm.Gaussian(sigma=5).rdp(1e7)
        detail = f"rdp(1e7) = {value:.6g} with bound={bound!r}; the mechanism without sampling has {closed:.6g}"
        yield Fact("Order 1e7: evaluations of the base curve", float(len(asked)), 2000, detail)
