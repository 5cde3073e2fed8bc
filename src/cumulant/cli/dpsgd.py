"""`cumulant dpsgd`: DP-SGD by every way to form batches, a claim about it, and statements to publish."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cumulant.cli.card import Card, columns_of_output, patient, print_card
from cumulant.cli.completion import complete
from cumulant.cli.failures import ExitCode
from cumulant.cli.loop_card import LoopRow, group_by_relation, large_delta, loops_card
from cumulant.cli.options import Explain, Json
from cumulant.cli.statement import (
    FORMS,
    check_noise,
    print_claim,
    print_statement,
    read_words,
    refuse_folder,
    warn_missing,
)
from cumulant.errors import InputError
from cumulant.hints import nearest

if TYPE_CHECKING:
    from cumulant.accounting.check import Check
    from cumulant.accounting.guarantee import Guarantee
    from cumulant.domains import Exact, Number
    from cumulant.mechanisms.mechanism import Expression
    from cumulant.relation import Relation
    from cumulant.training.sgd import NoisySGD

ANY_ORDER = "any-order"
"""The way to form batches of DataLoader(shuffle=True)."""

LOADER = "DataLoader(shuffle=True)"
"""The usual loader of torch, which promises no secret order."""

SAMPLING_NAMES = ("fixed-size", "poisson", "balls-in-bins", "shuffled", ANY_ORDER)
"""Names of cumulant.training.sgd.SAMPLINGS for --help, written out: training loads numpy, which --help does without."""

CORRELATED_NAMES = ("balls-in-bins, one draw", "cyclic-poisson", "fixed-order", "min-sep")
"""Names of cumulant.training.sgd.CORRELATED, the ways that go with --noise-bands, for --help."""

_SAMPLINGS = ", ".join(SAMPLING_NAMES)

OPACUS_RATE = "opacus"
"""The value of --rate that means the rate of stock Opacus: 1 / len(loader), as a float32."""

MORE = "--sampling NAME  --claim EPSILON  --explain  --json"

FIXED = "all parameters were fixed in advance"
"""The fact to check about every loop."""

RANDOM_ALLOCATION = "balls-in-bins is random allocation with one step in each pass"
"""A hint for those who know a way to form batches by the name of its scheme."""

REPLACED_LOADER = "if Opacus' make_private got this loader, it replaced it: your run is Poisson (--rate opacus)"
"""A note on DataLoader(shuffle=True) beside Opacus."""

ACCOUNTED = "the history says what was accounted; with poisson_sampling=False, something else ran"
"""A note on every history of Opacus."""

DOUBLED = (
    "The factor 2: gradients are clipped to norm C. Replacing a record moves their sum by up to 2C, so replace-one rows have "
    "sensitivity 2 in units of C; adding or removing a record moves it by up to C. The two kinds of rows are different "
    "statements: compare them with care."
)


def dpsgd(
    delta: Annotated[str, typer.Option(help="A probability, usually below 1 / records.")],
    batch: Annotated[int | None, typer.Option(help="Records per step, on average.")] = None,
    records: Annotated[int | None, typer.Option(help="Records in the data set.")] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            help="Poisson rate in place of --batch and --records; with both, `opacus` means 1 / len(loader).",
            autocompletion=complete((OPACUS_RATE,)),
        ),
    ] = None,
    from_opacus: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON of an Opacus accountant's state_dict(), in place of the rest."),
    ] = None,
    epochs: Annotated[str | None, typer.Option(help="Passes over the data; or give --steps.")] = None,
    steps: Annotated[int | None, typer.Option(help="Noisy steps; or give --epochs.")] = None,
    noise_multiplier: Annotated[
        str | None, typer.Option(help="Standard deviation of the noise on the sum, over the clipping norm.")
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="Find the noise multiplier that meets this epsilon.")] = None,
    sampling: Annotated[
        str | None,
        typer.Option(
            help=f"Only one of: {_SAMPLINGS}; or of those that --noise-bands shows.",
            autocompletion=complete((*SAMPLING_NAMES, *CORRELATED_NAMES)),
        ),
    ] = None,
    per_epoch: Annotated[bool, typer.Option("--per-epoch", help="Also print what is spent after each epoch.")] = False,
    noise_bands: Annotated[
        str | None,
        typer.Option(
            help="Correlated noise: the first column of its matrix, such as 1,0.5. "
            "The noise multiplier stays over the clipping norm."
        ),
    ] = None,
    claim: Annotated[str | None, typer.Option(help="Judge this claimed epsilon for every way to form batches.")] = None,
    statement: Annotated[
        str | None,
        typer.Option(
            help=f"Print a statement about one --sampling: {', '.join(FORMS)}.", autocompletion=complete(FORMS)
        ),
    ] = None,
    setting: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON with the words of a statement.")] = None,
    deployment: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON for --statement registry.")] = None,
    unit: Annotated[str | None, typer.Option(help="For a statement: whose data one record is.")] = None,
    released: Annotated[str | None, typer.Option(help="For a statement: what is published.")] = None,
    tuning: Annotated[str | None, typer.Option(help="For a statement: how parameters were chosen.")] = None,
    not_covered: Annotated[str | None, typer.Option(help="For a statement: what was computed besides.")] = None,
    noise: Annotated[str | None, typer.Option(help="For a statement: exact or float.")] = None,
    sampler: Annotated[
        str | None, typer.Option(help="For a statement: how batches were drawn, as implemented.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="For --statement card: the name of the model.")] = None,
    task: Annotated[str | None, typer.Option(help="For --statement card: such as image-classification.")] = None,
    dataset: Annotated[str | None, typer.Option(help="For --statement card: the name of the data set.")] = None,
    out: Annotated[str | None, typer.Option(hidden=True)] = None,
    explain: Explain = False,
    as_json: Json = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print the number alone, behind its way to form batches where there are several."),
    ] = False,
) -> int:
    """Account for DP-SGD in the words of training loops.

    Shows the cost of every way to form batches, and what each assumes.

    Give the noise multiplier and get epsilon, or give --epsilon and get the noise multiplier.

    With --claim every way to form batches gets a verdict. Exit codes are then 0 all hold, 1 all are false, 4 open.
    Rows that differ are open: the verdict depends on how batches were formed.

    Every row protects one record. If one person has several, ask: cumulant explain User. For a budget of every record, ask:
    cumulant explain "individual filter".

    cumulant conformance tests a loader, and cumulant audit a whole loop. cumulant mu compares runs by one number.

    \b
    Examples:
      cumulant dpsgd --batch 256 --records 60000 --epochs 30 --noise-multiplier 1.1 --delta 1e-5
      cumulant dpsgd --batch 256 --records 60000 --epochs 30 --epsilon 3 --delta 1e-5
      cumulant dpsgd --batch 60 --records 6000 --epochs 10 --noise-multiplier 4 --delta 1e-6 --noise-bands 1,0.5
      cumulant dpsgd --batch 64 --records 1797 --steps 280 --noise-multiplier 4 --delta 1e-5 --sampling fixed-size --json
      cumulant dpsgd --batch 256 --records 60000 --epochs 30 --noise-multiplier 1.1 --delta 1e-5 --claim 3
      cumulant dpsgd --batch 256 --records 60000 --epochs 30 --noise-multiplier 1.1 --delta 1e-5 --rate opacus
      cumulant dpsgd --rate 0.01 --steps 1000 --noise-multiplier 1.1 --delta 1e-6
      cumulant dpsgd --from-opacus state.json --delta 1e-5
      cumulant dpsgd --from-opacus state.json --delta 1e-5 --statement latex --unit "one image"
      cumulant dpsgd --batch 64 --records 1797 --steps 280 --noise-multiplier 4 --delta 1e-5 --sampling poisson --statement text
    """
    from cumulant.cli.answer import bare_number
    from cumulant.domains import DELTA, EPSILON, POSITIVE
    from cumulant.training.opacus_history import from_opacus as read_history
    from cumulant.training.sgd import CORRELATED, SAMPLINGS

    asked = DELTA.check("delta", delta)
    words = {"unit": unit, "released": released, "tuning": tuning, "not_covered": not_covered}
    words |= {"noise": noise, "sampler": sampler, "model": model, "task": task, "dataset": dataset}
    given = {name: value for name, value in words.items() if value is not None}
    if from_opacus is not None:
        others = (
            batch,
            records,
            rate,
            epochs,
            steps,
            noise_multiplier,
            epsilon,
            sampling,
            noise_bands,
        )
        if any(each is not None for each in others) or per_epoch:
            raise InputError("--from-opacus reads the whole run; beside it go --delta, --claim, and --statement")
        worded = bool(given) or setting is not None or deployment is not None
        _check_words(claim, statement, None, None, worded)
        history: Expression = read_history(read_words(from_opacus))
        if statement is not None:
            words_of = {**read_words(setting), **given}
            text, missing = print_statement(history, asked, statement, words_of, deployment, [ACCOUNTED])
            typer.echo(text, nl=False)
            warn_missing(missing)
            return ExitCode.OK
        if claim is not None:
            _check_unexplained(explain)
            claimed, row = EPSILON.check("claim", claim), HistoryRow(history)
            checked = [SAMPLINGS[row.sampling].checked, FIXED]
            return print_claim([row], claim, claimed, asked, "", as_json, quiet, [ACCOUNTED], checked=checked)
        return _answer_history(history, asked, explain, as_json, quiet)
    if (noise_multiplier is None) == (epsilon is None):
        raise InputError(
            "give --noise-multiplier to get epsilon, or --epsilon to get the noise multiplier, one of them"
        )
    if (epochs is None) == (steps is None):
        raise InputError("give --epochs or --steps, one of them")
    bands = None if noise_bands is None else noise_bands.split(",")
    known = SAMPLINGS if bands is None else CORRELATED
    sampling = None if sampling is None else sampling.lower()
    if sampling is not None and sampling not in known:
        allocated = sampling.replace("_", "-") in ("random-allocation", "randomallocation") and bands is None
        meant = f" ({RANDOM_ALLOCATION})" if allocated else nearest(sampling, known)
        raise InputError(f"sampling={sampling!r} is unknown{meant}; choose one of {_quoted_where_ambiguous(known)}")
    if rate is not None:
        if sampling not in (None, "poisson") or bands is not None:
            other = "--noise-bands" if bands is not None else sampling
            raise InputError(f"--rate is for Poisson samples; leave --rate away for {other}")
        sampling = "poisson"
    if out is not None:
        check_noise(noise_multiplier)
        loops = [
            replace(
                _plan(batch, records, rate, epochs, steps, noise_multiplier or "1"), sampling=name, noise_bands=bands
            )
            for name in ([sampling] if sampling else known)
        ]
        raise refuse_folder(out, [str(sgd.run) for sgd in loops], delta, claim, unit)
    for option, other in (("--statement", statement), ("--claim", claim)):
        if per_epoch and other is not None:
            raise InputError(f"--per-epoch and {option} print different things; give one of them")
    worded = bool(given) or setting is not None or deployment is not None
    _check_words(claim, statement, epsilon, None if sampling else tuple(known), worded)
    plan = _plan(batch, records, rate, epochs, steps, noise_multiplier or "1")
    if statement is not None:
        sgd = replace(plan, sampling=sampling or "", noise_bands=bands)
        sgd = sgd if epsilon is None else sgd.calibrated(epsilon=POSITIVE.check("epsilon", epsilon), delta=asked)
        stated = sgd if rate is None else sgd.run  # a rate leaves open how many records there are
        caveats = _opacus_caveat(batch, records) if rate == OPACUS_RATE and batch and records else []
        words_of = {**read_words(setting), **given}
        text, missing = print_statement(stated, asked, statement, words_of, deployment, caveats)
        typer.echo(text, nl=False)
        warn_missing(missing)
        return ExitCode.OK
    if claim is not None:
        _check_unexplained(explain)
        loops = [replace(plan, sampling=name, noise_bands=bands) for name in ([sampling] if sampling else known)]
        claimed, described = (
            EPSILON.check("claim", claim),
            _describe(plan, noise_multiplier, rate, [_steps(sgd) for sgd in loops]),
        )
        careful = [*large_delta(asked, records, "records"), *_about_opacus(loops, rate)]
        careful += [*_counted_passes(loops[0]), *_replaced_loader(loops[0])] if sampling else []
        checked = [loops[0].loop.checked, FIXED]
        return print_claim(loops, claim, claimed, asked, described, as_json, quiet, careful, checked=checked)
    rows, names = [], [sampling] if sampling else list(known)
    for place, name in enumerate(names, start=1):
        sgd = replace(plan, sampling=name, noise_bands=bands)
        with patient(f"accounting for {name}, {place} of {len(names)}"):
            if epsilon is not None:
                sgd = sgd.calibrated(epsilon=POSITIVE.check("epsilon", epsilon), delta=asked)
            rows.append((sgd, sgd.guarantee(delta=asked)))
    if quiet:
        for sgd, found in rows:
            number = bare_number(found.epsilon) if epsilon is None else str(sgd.noise_multiplier)
            typer.echo(number if sampling else f"{sgd.sampling} {number}")
        return _code(rows)
    if as_json:
        typer.echo(json.dumps({"delta": float(asked), "rows": [_fields(sgd, g, per_epoch, rate) for sgd, g in rows]}))
        return _code(rows)
    careful = large_delta(asked, records, "records")
    if sampling:
        print_card(
            _run_card(*rows[0], epsilon, [*careful, *_counted_passes(rows[0][0]), *_replaced_loader(rows[0][0])]),
            explain,
        )
    else:
        print_card(
            _rows_card(rows, epsilon, asked, noise_multiplier, [*careful, *([] if bands else _opacus_loader(plan))]),
            explain,
        )
    if explain:
        _print_explanation(rows, rate)
    if per_epoch:
        _print_epochs([sgd for sgd, _ in rows], asked)
    return _code(rows)


def _quoted_where_ambiguous(names: Iterable[str]) -> str:
    """Return names as a list, with quotes around those that hold a comma themselves.

    >>> _quoted_where_ambiguous(["balls-in-bins, one draw", "min-sep"])
    "'balls-in-bins, one draw', min-sep"
    """
    return ", ".join(repr(each) if "," in each else each for each in names)


def _plan(
    batch: int | None, records: int | None, rate: str | None, epochs: str | None, steps: int | None, noise: str
) -> NoisySGD:
    """Return the loop that the options describe: by batch and records, or by a Poisson rate."""
    from cumulant.domains import PROBABILITY
    from cumulant.training.opacus_history import loader_length, torch_rate
    from cumulant.training.sgd import NoisySGD

    if rate is None or rate == OPACUS_RATE:
        if batch is None or records is None:
            raise InputError("give --batch and --records, such as --batch 256 --records 60000, or --rate and --steps")
        plan = NoisySGD(batch, records, noise, epochs, steps)
        if rate is None:
            return plan
        length = loader_length(batch, records)
        share = torch_rate(1 / length)
        passes = None if epochs is None else math.ceil(plan_epochs(epochs) * length)
        return NoisySGD(
            share.numerator, share.denominator, noise, None, steps if passes is None else passes, 1, "poisson"
        )
    if batch is not None or records is not None:
        raise InputError(
            f"--rate {rate} takes the place of --batch and --records; with both, only --rate opacus is allowed"
        )
    chance = PROBABILITY.check("rate", rate)
    if chance == 0:
        raise InputError("--rate 0 draws no record; give a probability above 0")
    return NoisySGD(chance.numerator, chance.denominator, noise, epochs, steps, 1, "poisson")


def plan_epochs(epochs: str) -> Exact:
    """Return the number of epochs as an exact number.

    >>> plan_epochs("2.5")
    Exact('2.5')
    """
    from cumulant.domains import POSITIVE

    return POSITIVE.check("epochs", epochs)


def _describe(plan: NoisySGD, noise: str | None, rate: str | None = None, steps: Sequence[int] = ()) -> str:
    """Return the loop in words; `steps` are those of several ways to form batches, if they may differ."""
    batches = f"batches of {plan.batch:,} of {plan.records:,}" if rate is None else f"Poisson rate {rate}"
    least, most = min(steps, default=plan.total_steps), max(steps, default=plan.total_steps)
    count = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f"{count} steps with {batches}" + (f", noise multiplier {noise}" if noise else "")


def _steps(sgd: NoisySGD) -> int:
    """Return the steps of the accounted run, or those of its passes with a short last batch kept."""
    if sgd.noise_bands is not None:
        matrix = getattr(sgd.run, "inner", None)
        return int(getattr(matrix, "steps", None) or sgd.total_steps)
    return _kept_steps(sgd, sgd.planned_passes, sgd.total_steps)


def _about_opacus(loops: list[NoisySGD], rate: str | None) -> list[str]:
    """Return when the Poisson row is that of Opacus, whose rate is one over the length of the loader; empty if it always is."""
    if rate == OPACUS_RATE:
        return ["only if Opacus drew the batches: DataLoader(shuffle=True) is any-order"]
    poisson = any(sgd.sampling == "poisson" and sgd.noise_bands is None for sgd in loops)
    if rate is None and poisson and loops[0].records % loops[0].batch:
        return ["if Opacus drew the batches, add --rate opacus"]
    return []


def _opacus_caveat(batch: int, records: int) -> list[str]:
    """Return what a statement says about the rate of stock Opacus.

    >>> _opacus_caveat(256, 60000)
    ['the rate is that of Opacus, 1 / 235 as its loader has 235 batches, not 256 / 60000; Opacus must have drawn them']
    """
    from cumulant.training.opacus_history import loader_length

    length = loader_length(batch, records)
    other = "" if records % batch == 0 else f", not {batch} / {records}"
    rate = f"1 / {length} as its loader has {length} batches{other}"
    return [f"the rate is that of Opacus, {rate}; Opacus must have drawn them"]


def _opacus_loader(plan: NoisySGD) -> list[str]:
    """Return which row is that of stock Opacus, where it draws another number of batches than the loop says.

    The last row names torch's loader. `make_private` replaces that loader by Poisson samples.
    """
    return (
        [] if plan.records % plan.batch == 0 else [f"if Opacus got the loader, it is Poisson: add --rate {OPACUS_RATE}"]
    )


def _counted_passes(sgd: NoisySGD) -> list[str]:
    """Return why steps count as more passes than a loader that keeps its last batch starts; else nothing."""
    from cumulant.training.opacus_history import loader_length

    if sgd.steps is None or sgd.loop.per_step or sgd.noise_bands is not None:
        return []
    counted, kept = sgd.passes(sgd.steps), -(-sgd.steps // loader_length(sgd.batch, sgd.records))
    if counted <= kept:
        return []
    why = f"{sgd.steps:,} steps count as {counted:,} passes, as the last batch may be dropped"
    return [f"{why}; if all batches ran, say --epochs {kept}"]


def _replaced_loader(sgd: NoisySGD) -> list[str]:
    """Return that Opacus may have replaced the loader, if the way to form batches is that of a loader."""
    return [REPLACED_LOADER] if sgd.sampling == ANY_ORDER else []


def _secret_order(sgd: NoisySGD, found: Guarantee) -> str:
    """Return the lower end of the secret order that this way includes, in words; empty if none is known.

    A guarantee for every order holds for a random one, so what a secret order needs every order needs.
    """
    from cumulant.accounting.numbers import rounded_down

    if not sgd.loop.no_better_than:
        return ""
    least = replace(sgd, sampling=sgd.loop.no_better_than).guarantee(delta=found.delta).lower
    return f"at least {rounded_down(least)}, even if the order was secret" if least else ""


def _noise_words(sgd: NoisySGD) -> str:
    """Return which norm a noise multiplier is over, where the noise is correlated and others state another; else nothing.

    The norm is rounded down: a larger divisor would ask JAX Privacy for less noise than is accounted.
    """
    if sgd.noise_bands is None:
        return ""
    from cumulant.accounting.numbers import rounded_down
    from cumulant.mechanisms.matrix_mechanism import MatrixMechanism

    norm = rounded_down(MatrixMechanism(bands=sgd.noise_bands, steps=sgd.total_steps, sigma=1).column_norm)
    return f"over the clipping norm; JAX Privacy states it over the column norm: divide by {norm}"


def _run_card(sgd: NoisySGD, found: Guarantee, epsilon: str | None, careful: list[str]) -> Card:
    """Return the answer for one way to form batches."""
    from cumulant.cli import answer

    card = answer.answer_card(found)
    least = _secret_order(sgd, found)
    if least:
        card.verdict = card.verdict.replace(answer.NO_LOWER_END, least)
    if epsilon is not None:
        card.headline = (
            f"noise multiplier = {sgd.noise_multiplier}   meets ε ≤ {epsilon} at δ = {found.proof.question.value}"
        )
    card.rows = [(label, value) for label, value in card.rows if label not in ("Check these", "More")]
    card.add("Noise", _noise_words(sgd))
    card.add("Careful", careful)
    known = _known_order(sgd, found)
    order = [f"DataLoader(shuffle=True) has no secret order: ε = {known} (any-order)"] if known else []
    card.add("Check these", [sgd.loop.checked, *order, FIXED])
    card.add("More", "--claim EPSILON  --statement text  --explain  --json")
    return card


def _rows_card(
    rows: list[tuple[NoisySGD, Guarantee]], epsilon: str | None, delta: Exact, noise: str | None, careful: list[str]
) -> Card:
    """Return the answer for every way to form batches: one epsilon, or one noise multiplier, per row."""
    lines = [LoopRow.read(sgd, found, _formed(sgd, epsilon), epsilon) for sgd, found in rows]
    card = loops_card(lines, epsilon, delta, "depends on how batches are formed; random draws must be secret")
    card.add("Loop", _describe(rows[0][0], noise, steps=[_steps(sgd) for sgd, _ in rows]))
    card.add("Noise", _noise_words(rows[0][0]))
    card.add("Careful", careful)
    card.add("More", MORE)
    return card


def _formed(sgd: NoisySGD, epsilon: str | None) -> str:
    """Return how batches are formed, behind the words that a loader in any order gets if nobody is protected."""
    from cumulant.accounting.text import limits_attackers

    if epsilon is None and sgd.sampling == ANY_ORDER and not limits_attackers(sgd.run.membership("0.01")):
        return f"no useful guarantee: {LOADER}"
    return sgd.loop.brief


def _known_order(sgd: NoisySGD, found: Guarantee) -> str:
    """Return the epsilon of shuffled batches whose order is not secret; empty where secrecy gains nothing."""
    from cumulant.accounting.numbers import rounded_up

    known = _plain_epsilon(sgd, found)
    return rounded_up(known) if known > found.epsilon else ""


def _plain_epsilon(sgd: NoisySGD, found: Guarantee) -> float:
    """Return the epsilon of shuffled batches without amplification; the answer itself for other ways to form batches."""
    return float(sgd.unamplified().epsilon(found.delta)) if sgd.sampling == "shuffled" else found.epsilon


def _assumes(sgd: NoisySGD, rate: str | None) -> str:
    """Return what the way to form batches assumes, with the real rate where --rate was given."""
    if rate is None:
        return sgd.loop.assumes
    return sgd.loop.assumes.replace("batch / records", f"{sgd.batch / sgd.records:.10g}")


def _print_explanation(rows: list[tuple[NoisySGD, Guarantee]], rate: str | None) -> None:
    """Print the factor 2, the accounted runs and what each way to form batches assumes, of the rows shown.

    A single row comes with its proof, as `cumulant epsilon --explain` prints it.
    """
    from cumulant.cli import answer

    width = columns_of_output()
    if len(rows) == 1:
        least = _secret_order(*rows[0])
        typer.echo(f"\n{answer.explanation(rows[0][1], least and f'{least[:1].upper()}{least[1:]}.')}")
    relations = {sgd.relation for sgd, _ in rows}
    typer.echo(f"\n{textwrap.fill(DOUBLED, width)}" if len(relations) > 1 or "replace-one" in relations else "")
    _table(rows)
    for sgd, found in rows:
        if sgd.sampling == "shuffled":
            typer.echo(f"\nshuffled: {_gain(sgd, found)}")
        if sgd.sampling == "poisson" and sgd.noise_bands is None:
            typer.echo(f"\npoisson: {_replaced(sgd, found)}")
        least = _secret_order(sgd, found)
        if least:
            typer.echo(f"\n{sgd.sampling}: {least}.")
    typer.echo("\nWhat each assumes of the loop:")
    for sgd, _ in rows:
        typer.echo(textwrap.fill(f"{sgd.sampling}: {_assumes(sgd, rate)}.", width, subsequent_indent="  "))


def _print_epochs(loops: list[NoisySGD], delta: Exact) -> None:
    """Print what is spent after each epoch: one row for each, and one column for each way to form batches.

    A single way also has its steps. Ways with equal numbers share a column. The columns are in the order of the card.
    """
    from cumulant.accounting.numbers import rounded_up

    ordered = [sgd for group in group_by_relation(loops, lambda sgd: sgd.relation).values() for sgd in group]
    columns: dict[tuple[str, ...], list[str]] = {}
    for number, sgd in enumerate(ordered, start=1):
        with patient(f"epochs of {sgd.sampling}, {number} of {len(ordered)}"):
            spent = sgd.per_epoch(delta)
        columns.setdefault(tuple(rounded_up(each["epsilon"]) for each in spent), []).append(sgd.sampling)
    if len(ordered) == 1:
        typer.echo(f"\n{ordered[0].sampling}, after each epoch (rounded up):")
        for each in spent:
            step = _kept_steps(ordered[0], each["epoch"], each["step"])
            typer.echo(f"  epoch {each['epoch']:>5,}  step {step:>9,}  epsilon {rounded_up(each['epsilon'])}")
        return
    last = max(map(len, columns))
    dash = "" if all(len(cells) == last for cells in columns) else "; a dash: this way has no such epoch"
    typer.echo(f"\nepsilon after each epoch (rounded up{dash}):")
    heads = ["; ".join(names) for names in columns.values()]
    widths = [max(len(head), *map(len, cells)) for head, cells in zip(heads, columns, strict=True)]
    typer.echo("  epoch  " + "  ".join(head.rjust(width) for head, width in zip(heads, widths, strict=True)))
    for row in range(last):
        cells = [cells[row] if row < len(cells) else "-" for cells in columns]
        shown = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        typer.echo(f"  {row + 1:>5,}  {shown}")


def _kept_steps(sgd: NoisySGD, epoch: int, counted: int) -> int:
    """Return the steps after an epoch of a loop that keeps its short last batch; `counted` where it may not keep it.

    `shuffled` and `any-order` visit each record once per epoch; they are accounted by passes, of which steps are no part.
    """
    if sgd.epochs is None or sgd.noise_bands is not None or sgd.sampling not in ("shuffled", ANY_ORDER):
        return counted
    return math.ceil(min(Fraction(epoch), Fraction(plan_epochs(str(sgd.epochs)))) * -(-sgd.records // sgd.batch))


def _answer_history(run: Expression, delta: Exact, explain: bool, as_json: bool, quiet: bool) -> int:
    """Answer for the history that an Opacus accountant wrote; torch and Opacus need not be installed."""
    from cumulant.cli import answer

    found = run.guarantee(delta=delta)
    if quiet:
        typer.echo(answer.bare_number(found.epsilon))
    elif as_json:
        typer.echo(found.to_json())
    else:
        card = answer.answer_card(found)
        card.rows.insert(len(card.rows) - 1, ("Careful", [ACCOUNTED]))
        print_card(card, explain)
        if explain:
            typer.echo(f"\n{answer.explanation(found)}")
    return int(math.isinf(found.epsilon))


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """The run of an Opacus accountant as one way to form batches, on which a claim is judged."""

    run: Expression
    sampling: str = "poisson"

    @property
    def relation(self) -> Relation:
        """Return the neighbours of Poisson samples."""
        return self.run.relation

    def check(self, *, epsilon: Number, delta: Number) -> Check:
        """Judge the claim that the run is (epsilon, delta)-differentially private."""
        return self.run.check(epsilon=epsilon, delta=delta)


def _check_unexplained(explain: bool) -> None:
    """InputError if a claim is to be explained, which another command does."""
    if explain:
        raise InputError("--claim has no --explain; add --sampling NAME and give its run to cumulant check --explain")


def _check_words(
    claim: str | None, statement: str | None, epsilon: str | None, known: tuple[str, ...] | None, words: bool
) -> None:
    """InputError for options that do not go together; `known` has the names of --sampling where none is chosen."""
    if claim is not None and (epsilon is not None or statement is not None):
        raise InputError(
            "--claim judges a run that is given; give --noise-multiplier, and neither --epsilon nor --statement"
        )
    if statement is not None and statement not in FORMS:
        raise InputError(f"statement={statement!r} is unknown; choose one of {', '.join(FORMS)}")
    if statement is not None and known is not None:
        raise InputError(f"a statement is about one way to form batches; give --sampling, one of {', '.join(known)}")
    if statement is None and words:
        raise InputError("words about a run stand in a statement; give --statement text, or leave them away")


def _code(rows: list[tuple[NoisySGD, Guarantee]]) -> int:
    """Return 1 if nothing finite is known of any of them."""
    return int(all(math.isinf(found.epsilon) for _, found in rows))


def _gain(sgd: NoisySGD, found: Guarantee) -> str:
    """Say what the permutation saves against a loop that is not amplified."""
    from cumulant.accounting.numbers import rounded_up

    plain = _plain_epsilon(sgd, found)
    if found.epsilon < plain:
        return f"the secret permutation lowers epsilon from {rounded_up(plain)} to {rounded_up(found.epsilon)}."
    return f"the permutation gains nothing here; epsilon {rounded_up(plain)} is that of one release per epoch."


def _replaced(sgd: NoisySGD, found: Guarantee) -> str:
    """Say what the same Poisson samples cost if a record is replaced: the number beside replace-one rows."""
    from cumulant.accounting.numbers import rounded_up
    from cumulant.domains import quotient_spelling
    from cumulant.mechanisms.gaussian import Gaussian
    from cumulant.relation import Relation
    from cumulant.sampling.poisson import Poisson

    noisy_sum = Gaussian.from_clipping(norm=1, noise=str(sgd.noise_multiplier), relation=Relation.REPLACE_ONE)
    drawn = Poisson(rate=quotient_spelling(sgd.batch, sgd.records), relation="replace-one")
    epsilon = (noisy_sum @ drawn * sgd.total_steps).epsilon(delta=found.delta)
    return f"the same samples have epsilon {rounded_up(epsilon)} if one record is replaced by another (replace-one)."


def _table(rows: list[tuple[NoisySGD, Guarantee]]) -> None:
    """Print one line for each way to form batches, with the run that is accounted."""
    from cumulant.accounting.numbers import rounded_down, rounded_up

    lines = [("sampling", "neighbours", "noise multiplier", "epsilon", "at least", "steps", "what is accounted")]
    for sgd, found in rows:
        lower = "-" if found.lower is None else rounded_down(found.lower)
        noise = str(sgd.noise_multiplier)
        numbers = (noise, rounded_up(found.epsilon), lower, f"{_steps(sgd):,}")
        lines.append((sgd.sampling, str(sgd.relation), *numbers, str(sgd.run)))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]) - 1)]
    for line in lines:
        typer.echo("  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]))


def _fields(sgd: NoisySGD, found: Guarantee, per_epoch: bool, rate: str | None) -> dict[str, Any]:
    fields = {
        "sampling": sgd.sampling,
        "relation": str(sgd.relation),
        "noise_multiplier": float(sgd.noise_multiplier),
        "steps": sgd.total_steps,
        "epsilon": "inf" if math.isinf(found.epsilon) else found.epsilon,
        "epsilon_lower": found.lower,
        "rigour": found.rigour,
        "run": str(sgd.run),
        "assumes": _assumes(sgd, rate),
        "amplified": sgd.sampling not in ("shuffled", ANY_ORDER) or found.epsilon < _plain_epsilon(sgd, found),
    }
    return {**fields, "per_epoch": sgd.per_epoch(found.delta)} if per_epoch else fields
