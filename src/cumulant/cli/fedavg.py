"""`cumulant fedavg`: federated averaging by the ways to sample clients, side by side."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated

import typer

from cumulant.cli.card import Card, print_card
from cumulant.cli.completion import complete
from cumulant.cli.loop_card import LoopRow, large_delta, loops_card
from cumulant.cli.options import Json
from cumulant.cli.statement import Drawn, check_noise, print_claim, refuse_folder
from cumulant.errors import InputError
from cumulant.hints import nearest

if TYPE_CHECKING:
    from cumulant.accounting.guarantee import Guarantee
    from cumulant.domains import Exact
    from cumulant.training.fedavg import FedAvg

SAMPLING_NAMES = "poisson, fixed-size"
"""Names of training.fedavg.SAMPLINGS for the help, so that other commands need not load that package."""

COHORTS = Drawn("groups of clients", who="client", found="clients")

NOISE_NAMES = "gaussian, discrete-gaussian, skellam"
"""Names of training.fedavg.NOISES for the help."""


def fedavg(
    clients: Annotated[int, typer.Option(help="Clients in the population.")],
    clients_per_round: Annotated[int, typer.Option(help="Clients in one round, on average.")],
    rounds: Annotated[int, typer.Option(help="Rounds of training.")],
    delta: Annotated[str, typer.Option(help="A probability, usually below 1 / clients.")],
    noise_multiplier: Annotated[
        str | None,
        typer.Option(help="Standard deviation of the noise on the sum, or of one share, over the clipping norm."),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="Find the noise multiplier that meets this epsilon.")] = None,
    claim: Annotated[
        str | None, typer.Option(help="Judge this claimed epsilon for every way to sample clients.")
    ] = None,
    sampling: Annotated[
        str | None,
        typer.Option(help=f"Only one of: {SAMPLING_NAMES}.", autocompletion=complete(SAMPLING_NAMES.split(", "))),
    ] = None,
    noise: Annotated[
        str, typer.Option(help=f"One of: {NOISE_NAMES}.", autocompletion=complete(NOISE_NAMES.split(", ")))
    ] = "gaussian",
    survivors: Annotated[
        int | None, typer.Option(help="Honest clients of each round that add a share of the noise, at the least.")
    ] = None,
    grid: Annotated[str | None, typer.Option(help="The unit of integer noise; the clipping norm is 1.")] = None,
    dimension: Annotated[int | None, typer.Option(help="Numbers in one update; integer noise then needs less.")] = None,
    out: Annotated[str | None, typer.Option(hidden=True)] = None,
    as_json: Json = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print the number alone, behind its way to sample where there are several."),
    ] = False,
) -> int:
    """Account for federated averaging in its own words.

    Shows the cost of every way to sample clients, and what each assumes.

    Give the noise multiplier and get epsilon, or give --epsilon and get the noise multiplier.

    With --claim every way to sample clients gets a verdict. Exit codes are then 0 all hold, 1 all are false,
    4 open. Rows that differ are open: the verdict depends on how clients were sampled.

    \b
    Examples:
      cumulant fedavg --clients 10000 --clients-per-round 100 --rounds 500 --noise-multiplier 1 --delta 1e-5 --claim 2.5
      cumulant fedavg --clients 60000 --clients-per-round 256 --rounds 1000 --noise-multiplier 2 --delta 1e-6
      cumulant fedavg --clients 10000 --clients-per-round 100 --rounds 500 --epsilon 3 --delta 1e-5 --sampling poisson
      cumulant fedavg --clients 10000 --clients-per-round 100 --rounds 50 --noise-multiplier 0.2 --survivors 60 --delta 1e-5
    """
    from cumulant.cli.answer import bare_number
    from cumulant.domains import DELTA, EPSILON, POSITIVE
    from cumulant.training.fedavg import SAMPLINGS, FedAvg

    if (noise_multiplier is None) == (epsilon is None):
        raise InputError(
            "give --noise-multiplier to get epsilon, or --epsilon to get the noise multiplier, one of them"
        )
    if claim is not None and epsilon is not None:
        raise InputError("--claim judges a run with its noise; give --noise-multiplier in place of --epsilon")
    if sampling is not None and sampling not in SAMPLINGS:
        raise InputError(
            f"sampling={sampling!r} is unknown{nearest(sampling, SAMPLINGS)}; choose one of {SAMPLING_NAMES}"
        )
    asked = DELTA.check("delta", delta)
    names = [sampling] if sampling else ["fixed-size"] if survivors is not None else list(SAMPLINGS)
    plans = [
        FedAvg(
            clients,
            clients_per_round,
            rounds,
            noise_multiplier or 1,
            sampling=name,
            noise=noise,
            survivors=survivors,
            grid=grid,
            dimension=dimension,
        )
        for name in names
    ]
    if out is not None:
        check_noise(noise_multiplier)
        raise refuse_folder(out, [str(plan.run) for plan in plans], delta, claim, "client")
    if claim is not None:
        claimed, described = EPSILON.check("claim", claim), _loop(plans[0])
        checked = [CHECKED[plans[0].sampling], *_also_checked(plans[0])]
        careful = large_delta(asked, clients, "clients")
        return print_claim(plans, claim, claimed, asked, described, as_json, quiet, careful, COHORTS, checked)
    rows = []
    for plan in plans:
        if epsilon is not None:
            plan = plan.calibrated(epsilon=POSITIVE.check("epsilon", epsilon), delta=asked)
        rows.append((plan, plan.guarantee(delta=asked)))
    if quiet:
        for plan, found in rows:
            number = bare_number(found.epsilon) if epsilon is None else str(plan.noise_multiplier)
            typer.echo(number if len(rows) == 1 else f"{plan.sampling} {number}")
    elif as_json:
        fields = [
            {
                "sampling": plan.sampling,
                "relation": str(plan.relation),
                "noise_multiplier": float(plan.noise_multiplier),
                "epsilon": "inf" if math.isinf(found.epsilon) else found.epsilon,
                "epsilon_lower": found.lower,
                "run": str(plan.run),
                "assumes": plan.assumes,
            }
            for plan, found in rows
        ]
        typer.echo(json.dumps({"delta": float(asked), "rows": fields}))
    else:
        print_card(_rows_card(rows, epsilon, asked))
    return int(all(math.isinf(found.epsilon) for _, found in rows))


CHECKED = {
    "poisson": "each client is sampled independently, in secret",
    "fixed-size": "every round takes a fresh uniform sample, in secret",
}
"""The fact to check about each way to sample clients, in a few words; --json has all assumptions."""


def _also_checked(plan: FedAvg) -> list[str]:
    """Return what to check about every way to sample clients."""
    found = ["weighted updates are clipped as a whole; the divisor is a constant"]
    if plan.grid is not None:
        found.append("updates are clipped on the grid")
    if plan.survivors is not None:
        found += [f"at least {plan.survivors} honest clients add their share", "who drops out does not depend on data"]
    return found


def _loop(plan: FedAvg, noise: bool = True) -> str:
    """Return the rounds in words."""
    loop = f"{plan.clients_per_round:,} of {plan.clients:,} clients in each of {plan.rounds:,} rounds"
    return f"{loop}, noise multiplier {plan.noise_multiplier}" if noise else loop


def _rows_card(rows: list[tuple[FedAvg, Guarantee]], epsilon: str | None, delta: Exact) -> Card:
    """Return the answer for every way to sample clients: one epsilon, or one noise multiplier, per row."""
    lines = [LoopRow.read(plan, found, CHECKED[plan.sampling], epsilon) for plan, found in rows]
    card = loops_card(lines, epsilon, delta, "depends on how clients are sampled", who="client")
    plan = rows[0][0]
    card.add("Loop", _loop(plan, noise=epsilon is None))
    card.add("Run", str(plan.run) if len(rows) == 1 else "")
    card.add("Careful", large_delta(delta, plan.clients, "clients"))
    card.add("Check yours", _also_checked(plan))
    card.add("More", "--sampling NAME  --epsilon EPSILON  --claim EPSILON  --json")
    return card
