"""`--statement` and `--claim` of `cumulant dpsgd` and `fedavg`: statements about a run, and verdicts on a claim."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cumulant.accounting.choices import DEFAULT_SLACK
from cumulant.cli.card import Card, Tone, patient, print_card
from cumulant.cli.failures import ExitCode, reason
from cumulant.cli.loop_card import group_by_relation, protected_group
from cumulant.errors import InputError
from cumulant.input_files import read_text

if TYPE_CHECKING:
    from cumulant.accounting.check import Check
    from cumulant.domains import Exact, Number
    from cumulant.mechanisms.mechanism import Expression
    from cumulant.relation import Relation
    from cumulant.training.sgd import NoisySGD

FORMS = ("text", "markdown", "latex", "card", "registry")
STRICT = ("card", "registry")
"""Forms that go to others as they are, so that nothing may be missing."""

TODO = "TODO"
DEPENDS = "depends"
"""The verdict where rows differ."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Words for the samples of a loop, and for whom it protects."""

    what: str
    who: str = "record"
    found: str = "members"
    """The plural of what an attack finds."""


BATCHES = Drawn("batches")


class AccountedLoop(Protocol):
    """A loop on which a claim is judged: a NoisySGD, a FedAvg, or the history of an Opacus accountant."""

    @property
    def sampling(self) -> str:
        """Return the name of the way to form batches."""

    @property
    def relation(self) -> Relation:
        """Return the neighbours."""

    @property
    def run(self) -> Expression:
        """Return the accounted run."""

    def check(self, *, epsilon: Number, delta: Number) -> Check:
        """Judge the claim that the loop is (epsilon, delta)-differentially private."""


MANY_ROWS = 5
"""Rows of a claim that fill twelve lines, so that the loop, which the reader wrote, is left out (convention)."""

CARD_WORDS = ("model", "task", "dataset")
ONE_PERCENT = "0.01"


def read_words(file: Path | None) -> dict[str, Any]:
    """Return the JSON object of a file; an empty one without a file."""
    if file is None:
        return {}
    try:
        found = json.loads(read_text(file))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{file} cannot be read: {reason(error)}; give a file with one JSON object") from None
    if not isinstance(found, dict):
        raise InputError(f'{file} must hold one JSON object, such as {{"unit": "one image"}}')
    return found


def print_statement(
    run: NoisySGD | Expression,
    delta: Exact,
    form: str,
    said: Mapping[str, Any],
    deployment_file: Path | None,
    caveats: Sequence[str] = (),
) -> tuple[str, list[str]]:
    """Return the statement in one form and the words that are missing; InputError where none may be.

    `caveats` are added to those of the noise.
    """
    from cumulant.training.card import NOISES, Setting, statement
    from cumulant.training.registry import Deployment

    names = [each.name for each in fields(Setting)]
    unknown = [name for name in said if name not in (*names, *CARD_WORDS)]
    if unknown:
        raise InputError(f"{unknown[0]!r} is no word of a setting; there are {', '.join((*names, *CARD_WORDS))}")
    needed = [*names, *(CARD_WORDS if form == "card" else ())]
    missing = [name for name in needed if not str(said.get(name) or "").strip()]
    if form in STRICT and missing:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        example = json.dumps(dict.fromkeys(missing, "…"), ensure_ascii=False)
        raise InputError(
            f"a {form} leaves nothing open, and these are missing: {options}; give them, or --setting FILE with {example}"
        )
    words = {name: str(said.get(name) or TODO) for name in names}
    setting = Setting(**words | ({} if words["noise"] in NOISES else {"noise": "float"}))
    found = statement(run, [delta], setting, caveats=caveats)
    if words["noise"] == TODO:
        found["noise"] = TODO
        found["caveats"] = [each for each in found["caveats"] if each not in NOISES.values()]
    if form == "registry":
        if deployment_file is None:
            raise InputError("--statement registry needs --deployment FILE, a JSON object with what only you know")
        return found.registry(Deployment.read(read_words(deployment_file))), missing
    if form == "card":
        return found.card(model=said["model"], task=said["task"], dataset=said["dataset"]), missing
    if form == "text":
        return found.text(), missing
    if form == "latex" and words["sampler"] == TODO:
        found["sampler"] = ""  # a paper has no place for TODO; standard error names it
    return (found.markdown() if form == "markdown" else found.latex() + "\n"), missing


def warn_missing(missing: list[str]) -> None:
    """Name on standard error what was written as TODO."""
    if missing:
        sys.stderr.write(f"TODO: only you know {', '.join(missing)}\n")


def check_noise(noise: str | None) -> None:
    """InputError if a folder is asked for before the noise is known."""
    if noise is None:
        raise InputError("--out keeps a run with its noise; give --noise-multiplier in place of --epsilon")


def refuse_folder(out: str, runs: Sequence[str], delta: str, claim: str | None, unit: str | None) -> InputError:
    """Return the error for --out, with the command that archives the only run; several runs have no folder."""
    if len(runs) > 1:
        return InputError("--out keeps one run; add --sampling NAME, which prints the command of its archive")
    words = ["cumulant", "archive", runs[0], "--delta", delta, *(["--claim", claim] if claim else [])]
    words += [*(["--unit", unit] if unit else []), "--out", out]
    return InputError(f"a folder is written by another command: {shlex.join(words)}")


def print_claim(
    rows: Sequence[AccountedLoop],
    claim: str,
    claimed: Exact,
    delta: Exact,
    loop: str,
    as_json: bool,
    quiet: bool,
    careful: Sequence[str] = (),
    drawn: Drawn = BATCHES,
    checked: Sequence[str] = (),
) -> int:
    """Print the verdict on a claimed epsilon for every row, and return the exit code.

    `claim` is the number as it was written, `loop` describes what ran, `careful` warns, `drawn` names what is sampled, and
    `checked` says what to check about a single row.
    """
    found, code = judge_claim(rows, claimed, delta, fitted=as_json)
    if as_json:
        verdict = verdict_of_rows([each["verdict"] for each in found])
        fields = {"claim": float(claimed), "delta": float(delta), "verdict": verdict, "rows": found}
        sys.stdout.write(json.dumps(fields) + "\n")
    elif quiet:
        for each in found:
            sys.stdout.write(f"{each['verdict']}\n" if len(found) == 1 else f"{each['sampling']} {each['verdict']}\n")
    else:
        print_card(claim_card(found, claim, delta, loop, careful, drawn, checked))
    return code


def judge_claim(
    rows: Sequence[AccountedLoop], claimed: Exact, delta: Exact, fitted: bool = False
) -> tuple[list[dict[str, Any]], int]:
    """Return the verdict on a claimed epsilon for every way to form batches, and the exit code of all of them.

    `fitted` adds the mu of each run, which may take seconds and which no card shows.
    """
    found = []
    for number, sgd in enumerate(rows, start=1):
        with patient(f"judging {sgd.sampling}, {number} of {len(rows)}"):
            check = sgd.check(epsilon=claimed, delta=delta)
            fit = sgd.run.gaussian_fit(slack=DEFAULT_SLACK) if fitted else None
            caught = sgd.run.membership(ONE_PERCENT)
        found.append(
            {
                "sampling": sgd.sampling,
                "relation": str(sgd.relation),
                "run": check.run if check.verdict == "false" else str(sgd.run),  # a false verdict names what it refutes
                "verdict": check.verdict,
                "epsilon": "inf" if check.epsilon == float("inf") else check.epsilon,
                "epsilon_lower": check.lower,
                "witness": check.witness,
                **({} if fit is None else {"mu": fit.to_dict()["mu"], "slack": fit.slack}),
                "true_positive_rate": caught,
            }
        )
    return found, _CODES.get(verdict_of_rows([each["verdict"] for each in found]), ExitCode.OPEN)


_CODES = {"holds": ExitCode.OK, "false": ExitCode.NO}
"""Exit codes of verdicts that all rows share; everything else is open."""


def verdict_of_rows(verdicts: Sequence[str]) -> str:
    """Return the verdict that all rows share; "depends" where they differ, for then nobody knows which row ran.

    >>> verdict_of_rows(["holds", "holds"]), verdict_of_rows(["false", "holds"])
    ('holds', 'depends')
    """
    return verdicts[0] if len(set(verdicts)) == 1 else DEPENDS


def claim_card(
    found: list[dict[str, Any]],
    claimed: str,
    delta: Exact,
    loop: str,
    careful: Sequence[str] = (),
    drawn: Drawn = BATCHES,
    checked: Sequence[str] = (),
) -> Card:
    """Return the verdict for every way to form batches, by the neighbours, and what to ask the authors."""
    from cumulant.relation import Relation

    verdicts = [each["verdict"] for each in found]
    card = Card(f"Claim: ε = {claimed}   at δ = {delta}")
    groups = group_by_relation(found, lambda each: Relation.read(each["relation"]))
    card.verdict = _one_verdict(found[0], drawn) if len(found) == 1 else _counted(verdicts, drawn, len(groups) > 1)
    card.tone = _TONES.get(verdict_of_rows(verdicts), "open")
    for relation, group in groups.items():
        card.add("Protects", protected_group(relation, drawn.who, len(groups) > 1 and len(group) > 1))
        for each in group:
            card.add(each["sampling"], _row_words(each, drawn.found))
    card.add("Loop", loop if len(found) < MANY_ROWS else "")
    card.add("Run", found[0]["run"] if len(found) == 1 else "")
    loader = _torch_loader({each["sampling"]: each["verdict"] for each in found})
    card.add("Careful", [*careful, *([loader] if loader else [])])
    card.add("Check these", checked if len(found) == 1 and verdicts != ["false"] else [])
    card.add("Ask them", _ask_the_authors(verdicts, drawn))
    card.add("More", "--json  cumulant check RUN --explain" if len(found) == 1 else "")
    return card


_TONES: dict[str, Tone] = {"holds": "good", "false": "bad"}
"""Tones of verdicts that all rows share; everything else is open."""

_WORST_FIRST = ("false", "open", "holds")
"""Verdicts, the worst first."""


def _row_words(row: Mapping[str, Any], found: str) -> str:
    """Return the verdict of one row, with the epsilon that is enough, the one that is needed, and the best attack.

    `found` is the plural of what the attack finds.
    """
    from cumulant.accounting.numbers import percent, rounded_down, rounded_up
    from cumulant.accounting.text import limits_attackers

    low, high, verdict = row["epsilon_lower"], float(row["epsilon"]), row["verdict"]
    said = [f"ε = {rounded_up(high)} is enough"] if verdict != "false" and high < float("inf") else []
    if low and verdict != "holds":
        # nothing is known from below about a known order but what a secret order needs too
        secret = verdict == "false" and row["sampling"] == "any-order"
        said.append(f"at least {rounded_down(low)}" + (", even if the order was secret" if secret else " is needed"))
    if verdict != "false" and limits_attackers(row["true_positive_rate"]):
        said.append(f"1 % false alarms find at most {percent(row['true_positive_rate'])} of {found}")
    return ": ".join(filter(None, (verdict, "; ".join(said))))


def _one_verdict(row: Mapping[str, Any], drawn: Drawn) -> str:
    """Return the verdict of the only row; a false one says for which neighbours, as others may be meant."""
    from cumulant.relation import Relation

    change = Relation.read(row["relation"]).change
    neighbours = f", if one {drawn.who} is {change}" if row["verdict"] == "false" and change else ""
    return f"{row['verdict']} for {row['sampling']}{neighbours}"


def _counted(verdicts: list[str], drawn: Drawn = BATCHES, neighbours: bool = False) -> str:
    """Return how many ways to form batches have each verdict, the worst first.

    `neighbours` says that the rows are about different ones, so that they are a cause too.

    >>> _counted(["holds", "false", "holds"]), _counted(["open", "open"])
    ('depends on how batches were formed: false for 1, holds for 2', 'open for both ways to form batches')
    >>> _counted(["holds", "false"], neighbours=True)
    'depends on batches and neighbours: false for 1, holds for 1'
    """
    counts = {word: verdicts.count(word) for word in _WORST_FIRST if word in verdicts}
    if len(counts) == 1:
        ways = "both" if len(verdicts) == 2 else f"all {len(verdicts)}"
        return f"{verdicts[0]} for {ways} ways to form {drawn.what}"
    cause = f"{drawn.what} and neighbours" if neighbours else f"how {drawn.what} were formed"
    return f"depends on {cause}: " + ", ".join(f"{word} for {n}" for word, n in counts.items())


def _torch_loader(verdicts: dict[str, str]) -> str:
    """Return which row is that of DataLoader(shuffle=True); nothing where its two rows agree or do not matter."""
    secret, known = verdicts.get("shuffled", ""), verdicts.get("any-order", "")
    if secret == known or not secret:
        return ""
    if not known:
        return "DataLoader(shuffle=True) promises no secret order: it is any-order" if secret == "holds" else ""
    return "DataLoader(shuffle=True) promises no secret order: it is any-order, not shuffled"


def _ask_the_authors(verdicts: list[str], drawn: Drawn) -> list[str]:
    """Return the questions on which every verdict rests; how batches were formed is given where there is one row."""
    asked = [f"How were {drawn.what} formed, and who saw them?"] if len(verdicts) > 1 else []
    return [*asked, "Is a neighbour added or replaced?", "Is the noise on the sum, in units of the clipping norm?"]
