"""The statement at the end: what was trained, what is guaranteed, what is assumed.

For a paper, a model card or a machine.

What only the people who trained can know has no default. Every number is rounded so that no more is claimed than was proved.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from cumulant.accounting import text as sentences
from cumulant.accounting.gaussian_fit import DEFAULT_SLACK, GaussianFit
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.numbers import percent, rounded_down, rounded_up
from cumulant.accounting.risk import Risk, risk
from cumulant.accounting.run import RunRecord
from cumulant.domains import DELTA, Exact, Number, listed
from cumulant.errors import InputError, shown
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.mechanism import Expression
from cumulant.mechanisms.shuffled_batches import ShuffledBatches
from cumulant.numerics.rounding import as_printed
from cumulant.relation import Relation
from cumulant.training.registry import Deployment, attack_text, checklist, fits_badly, gaussian_text, registry_text
from cumulant.training.sgd import NoisySGD

FALSE_ALARMS = {"0.001": "0.1 %", "0.01": "1 %", "0.1": "10 %"}

NOISES = {
    "exact": "noise was the exactly rounded ideal Gaussian on integer sums",
    "float": "noise was added in floating point: the guarantee is for ideal noise",
}

COVERED = (
    "gradients were clipped per example, and no layer mixes examples of a batch",
    "secret samples, and the keys they came from, were kept secret",
    "post-processing is covered: whatever is computed from the released outputs alone, all checkpoints included",
)


PROSE_DIGITS = 6
"""Significant digits of a decimal in prose (convention: those of a noise multiplier that was found)."""

_LONG_DECIMAL = re.compile(r"(?<![\w.])\d+\.\d{13,}(?![\w.])")
"""A decimal with more digits after its point than people write, such as the rate of stock Opacus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The facts that only you know; all are required: say "none" where there is none.

    `unit`: whose data one record is (one example, one user with all their examples). `released`: what is published, such as
    the final weights or all checkpoints. `tuning`: how hyper-parameters were chosen, and on which data. `not_covered`: what
    was computed from the data outside of the accounting, such as un-noised losses or a private validation set. `noise`:
    "exact" (`rounded_gaussian` on integers) or "float". `sampler`: how batches were drawn, as implemented.

    >>> said = dict(unit="one image", released="the weights", tuning="none", not_covered="nothing")
    >>> Setting(**said, noise="exact", sampler="cumulant.training.FixedSizeSampler").unit
    'one image'
    """

    unit: str
    released: str
    tuning: str
    not_covered: str
    noise: str
    sampler: str

    def __post_init__(self) -> None:
        for each in fields(self):
            value: object = getattr(self, each.name)
            if not isinstance(value, str) or not value.strip():
                raise InputError(f"{each.name}={shown(value)} must be said in words; write 'none' where there is none")
        if self.noise not in NOISES:
            raise InputError(f"noise={self.noise!r} must be 'exact' or 'float'")


class Statement(dict[str, Any]):
    """A statement as a dict of JSON values, which can be printed for people in seven ways."""

    def json(self) -> str:
        """Return one JSON object."""
        return json.dumps(self)

    def markdown(self) -> str:
        """Return Markdown for a model card or a report."""
        lines = [f"## Privacy\n\n{self.sentence()}\n"]
        lines += ["| delta | epsilon | at least | rigour | by |", "|---|---|---|---|---|"]
        for row in self["guarantees"]:
            lower = "-" if row["epsilon_lower"] is None else rounded_down(row["epsilon_lower"])
            by = f"{row['method']}, {row['bound']}, {row['route']}"
            lines.append(f"| {_delta(row['delta'])} | {_up(row['epsilon'])} | {lower} | {row['rigour']} | {by} |")
        if self["unamplified"] is not None:
            plain = self["unamplified"]
            lines.append(
                "\nWithout amplification: a loader that visits each record once per epoch has "
                f"epsilon = {_up(plain['epsilon'])} at delta = {_delta(plain['delta'])}, for {plain['relation']} neighbours."
            )
        caught = ", ".join(
            f"{percent(each['true_positive_rate'])} at {alarms}"
            for each, alarms in zip(self["attack"]["rates"], FALSE_ALARMS.values(), strict=True)
        )
        lines.append(
            f"\nThe best attack finds at most {caught} false alarms; its advantage is at most "
            f"{percent(self['attack']['advantage'])}.\n"
        )
        lines += [f"{each}\n" for each in (gaussian_text(self["gaussian"]), *map(_plain, self["attack"]["risks"]))]
        lines += [f"* **{name}**: {_plain(self[key])}" for key, name in _WORDS.items()]
        lines += [f"* **Assumed**: {_plain(each)}" for each in self["assumptions"]]
        lines += [f"* **Caveat**: {_plain(each)}" for each in self["caveats"]]
        lines.append(f"* **Accounted**: {_code(self['run'])} with cumulant {self['version']}")
        lines.append(f"* **Audit**: {_plain(_audit_sentence(self['audit']))}")
        return "\n".join(lines) + "\n"

    def sentence(self) -> str:
        """Return the statement at the first delta in one sentence of Markdown."""
        first = self["guarantees"][0]
        return (
            f"The training satisfies (ε = {_up(first['epsilon'])}, δ = {rounded_up(first['delta'])})-differential privacy "
            f"in the central model for {self['relation']} neighbours, that is {self['relation_meaning']}; "
            f"the unit of privacy is {_plain(self['unit'])}."
        )

    def text(self) -> str:
        """Return the statement in plain sentences, one on each line."""
        lines = [
            self.sentence(),
            gaussian_text(self["gaussian"]),
            attack_text(self["attack"]),
            *self["attack"]["risks"],
        ]
        lines += [f"{name}: {_one_line(self[key])}." for key, name in _WORDS.items() if key != "relation_meaning"]
        lines += [f"Caveat: {_one_line(each)}." for each in self["caveats"]]
        run, rounded = few_digits(self["run"])
        return "\n".join([*lines, f"Accounted with cumulant {self['version']}: {_one_line(run)}{rounded}"]) + "\n"

    def latex(self) -> str:
        """Return one sentence for a paper, then the way to draw batches and the caveats on the same line."""
        first = self["guarantees"][0]
        lower = first["epsilon_lower"]
        between = "" if lower is None else f" (no claim below {rounded_down(lower)} is true)"
        epsilon = _power(_up(first["epsilon"]))
        run, rounded = few_digits(self["run"])
        batches = [f"Batches: {self['sampler']}."] if self["sampler"] else []
        noted = "".join(f" {_escape_latex(each)}" for each in [*batches, *(f"Caveat: {x}." for x in self["caveats"])])
        return (
            f"The training satisfies $(\\varepsilon, \\delta)$-differential privacy with $\\varepsilon = {epsilon}${between} "
            f"at $\\delta = {_power(rounded_up(first['delta']))}${self._latex_mu()} "
            f"for {_escape_latex(self['relation'])} neighbours, with "
            f"{_escape_latex(self['unit'])} as the unit of privacy; accounted with cumulant {_escape_latex(self['version'])} "
            f"({_escape_latex(first['rigour'])}): \\texttt{{{_escape_latex(run)}}}{rounded}.{noted}"
        )

    def _latex_mu(self) -> str:
        """Return mu with its slack in parentheses; empty where no finite mu is known, or where it fits badly."""
        found = self["gaussian"]
        if math.isinf(_number(found["mu"])) or fits_badly(found):
            return ""
        slack = _power(rounded_up(found["slack"]))
        return f" (Gaussian privacy with $\\mu = {_power(_up(found['mu']))}$ at slack ${slack}$)"

    def registry(self, deployment: Deployment) -> str:
        """Return a draft entry for the registry of deployments, as YAML that its published schema allows."""
        return registry_text(self, deployment)

    def checklist(self, deployment: Deployment | None = None) -> str:
        """Return the eleven lines of NIST SP 800-226; what nobody said is "not said"."""
        return checklist(self, deployment)

    def card(self, *, model: str, task: str, dataset: str) -> str:
        """Return a Hugging Face model card fragment.

        YAML is on top, of which every value is JSON, and the Markdown below.
        """
        first = self["guarantees"][0]
        metric = {
            "type": "epsilon",
            "name": f"epsilon at delta={_delta(first['delta'])} ({self['relation']})",
            "value": _up(first["epsilon"]) if math.isinf(_number(first["epsilon"])) else float(_up(first["epsilon"])),
        }
        result = {"task": {"type": task}, "dataset": {"name": dataset, "type": dataset}, "metrics": [metric]}
        top = {
            "tags": ["differential-privacy"],
            "model-index": [{"name": model, "results": [result]}],
            "privacy": dict(self),
        }
        return "\n".join(
            ["---", *(f"{key}: {json.dumps(value)}" for key, value in top.items()), "---", "", self.markdown()]
        )


_WORDS = {
    "unit": "Unit of privacy",
    "relation_meaning": "Neighbours are",
    "released": "Released",
    "tuning": "Hyper-parameters",
    "not_covered": "Not covered",
    "sampler": "Batches",
    "noise": "Noise",
}


def statement(
    run: Expression | NoisySGD,
    deltas: Iterable[Number],
    setting: Setting,
    *,
    caveats: Iterable[str] = (),
    audit: Mapping[str, Any] | None = None,
    slack: Number = DEFAULT_SLACK,
    priors: Mapping[str, Number] | None = None,
) -> Statement:
    """Return the statement about a training run at these deltas.

    Numbers come from the run, the rest from the setting.

    `caveats` are added to those of the noise, `audit` is what an audit found, as a dict. `slack` is that of mu. `priors`
    says how often an attacker succeeds without the release, such as {"attribute": "0.01"}; each adds a sentence about
    that attack. Of a `NoisySGD` it also says what would hold without amplification, for a loader that visits each record
    once per epoch.

    >>> import cumulant as cm
    >>> setting = Setting(
    ...     unit="one image",
    ...     released="the final weights",
    ...     tuning="none",
    ...     not_covered="none",
    ...     noise="exact",
    ...     sampler="cumulant.training.FixedSizeSampler",
    ... )
    >>> sgd = cm.NoisySGD(batch=64, records=1797, epochs=3, noise_multiplier=4)
    >>> found = statement(sgd, [1e-5], setting)
    >>> found["relation"], found["guarantees"][0]["epsilon"], found["unamplified"]["epsilon"]
    ('replace-one', 0.725, 3.8)
    >>> print(found.sentence())
    The training satisfies (ε = 0.7253, δ = 1e-5)-differential privacy in the central model for replace-one neighbours, ...
    """
    if isinstance(run, NoisySGD):
        return compose_statement(
            run.run,
            deltas,
            setting,
            guarantee=lambda delta: run.guarantee(delta=delta),
            assumptions=[run.loop.assumes],
            caveats=caveats,
            audit=audit,
            records=run.records,
            unamplified=_unamplified(run),
            slack=slack,
            priors=priors,
        )
    return compose_statement(run, deltas, setting, caveats=caveats, audit=audit, slack=slack, priors=priors)


def compose_statement(
    run: Expression,
    deltas: Iterable[Number],
    setting: Setting,
    *,
    guarantee: Callable[[Exact], Guarantee] | None = None,
    assumptions: Iterable[str] = (),
    caveats: Iterable[str] = (),
    audit: Mapping[str, Any] | None = None,
    records: int | None = None,
    unamplified: Expression | None = None,
    slack: Number = DEFAULT_SLACK,
    priors: Mapping[str, Number] | None = None,
) -> Statement:
    """Return the statement about a run by those who know more of it than the run says.

    `guarantee` answers at one delta, by default as the run does. `assumptions` and `caveats` are put in front of those of the
    run and of the noise. `records` is the size of the data set, None if it is not known; deltas are compared with it.
    `unamplified` is what the same loop is accounted as if no sample is secret, None if nothing is to be said about that.
    """
    if not isinstance(setting, Setting):
        raise InputError(f"setting={shown(setting)} must be a Setting(…): it says what no accountant can know")
    asked = [DELTA.check("deltas", delta) for delta in listed("deltas", deltas)]
    if not asked:
        raise InputError("deltas=[] asks for nothing; give at least one, such as [1e-5]")
    ran = run.record()
    found = [run.guarantee(delta=delta) if guarantee is None else guarantee(delta) for delta in asked]
    rates = [run.true_positive_rate(rate) for rate in FALSE_ALARMS]
    noted = [NOISES[setting.noise]] if setting.noise == "float" else []
    fit, size = run.gaussian_fit(slack=slack), records or _records(ran)
    return Statement(
        definition="central, (epsilon, delta)",
        relation=str(run.relation),
        relation_meaning=run.relation.meaning_for(ran.groups[0], ran.user),
        guarantees=[_row(each) for each in found],
        unamplified=None if unamplified is None else _plainly(unamplified, asked[0]),
        run=str(run),
        attack={
            "rates": [
                {"false_positive_rate": float(x), "true_positive_rate": y}
                for x, y in zip(FALSE_ALARMS, rates, strict=True)
            ],
            "advantage": run.advantage(),
            "finds": sentences.attacked(ran),
            "risks": [f"{each} {each.caveat}" for each in _risks(ran, priors)],
        },
        gaussian=fit.to_dict(),
        unit=setting.unit,
        released=setting.released,
        tuning=setting.tuning,
        not_covered=setting.not_covered,
        noise=setting.noise,
        sampler=setting.sampler,
        assumptions=list(dict.fromkeys([*assumptions, *sentences.assumptions(ran), *COVERED])),
        caveats=list(dict.fromkeys([*noted, *caveats, *_large_deltas(asked, size), *_large_slack(fit, size)])),
        audit=None if audit is None else dict(audit),
        version=_version(),
    )


def _records(ran: RunRecord) -> int | None:
    """Return the size of the data set if the schemes of the run state it, else None."""
    sizes = {part.scheme.sizes()[1] for part in ran.parts if part.scheme is not None} - {None}
    return min(int(size) for size in sizes if size is not None) if sizes else None


def _large_deltas(deltas: Iterable[Exact], records: int | None) -> list[str]:
    """Return a warning for every delta that publishing a random record would satisfy."""
    return [
        f"delta = {delta} is at least 1 / {records}: publishing one record at random would satisfy it; report a smaller delta"
        for delta in deltas
        if records is not None and delta * records >= 1
    ]


def _large_slack(fit: GaussianFit, records: int | None) -> list[str]:
    """Return a warning for a slack of mu that publishing a random record would satisfy."""
    if records is None or as_printed(fit.slack) * records < 1:
        return []
    return [
        f"the slack {rounded_up(fit.slack)} of mu is at least 1 / {records}: it may expose a record; report a smaller slack"
    ]


def _risks(ran: RunRecord, priors: Mapping[str, Number] | None) -> list[Risk]:
    """Return the risk of every kind of attack for which somebody knows the prior."""
    if priors is not None and not isinstance(priors, Mapping):
        raise InputError(
            f"priors={shown(priors)} must say how often an attack succeeds, such as {{'attribute': '0.01'}}"
        )
    return [risk(ran, kind, prior) for kind, prior in (priors or {}).items()]


def _row(found: Guarantee) -> dict[str, Any]:
    return {
        "delta": found.delta,
        "epsilon": "inf" if math.isinf(found.epsilon) else found.epsilon,
        "epsilon_lower": found.lower,
        "rigour": found.rigour,
        "method": found.method,
        "bound": found.evidence.bound,
        "route": found.route,
    }


def _unamplified(sgd: NoisySGD) -> Expression:
    """Return the run for a loader that visits each record once per pass.

    The noise is the same, as one noisy sum per pass.

    An added record would shift all later batches of such a loader, so only replacing one is bounded: it moves one sum of
    each pass, by up to twice the clipping norm.
    """
    noise = min(noise for noise, _ in sgd.segments)
    noisy_sum = Gaussian.from_clipping(norm=1, noise=noise, relation=Relation.REPLACE_ONE)
    return noisy_sum @ ShuffledBatches() * sgd.planned_passes


def _plainly(run: Expression, delta: Exact) -> dict[str, Any]:
    epsilon = run.epsilon(delta)
    return {
        "delta": float(delta),
        "epsilon": "inf" if math.isinf(epsilon) else epsilon,
        "relation": str(run.relation),
    }


def _version() -> str:
    from importlib.metadata import version

    return version("cumulant")


def _number(value: float | str) -> float:
    return math.inf if value == "inf" else float(value)


def _up(value: float | str) -> str:
    return rounded_up(_number(value))


def _delta(value: float) -> str:
    """Return the delta in few digits, never less than it is."""
    text = re.sub(r"e-0(?=\d)", "e-", f"{value:g}")  # 1e-5, as in every other place
    return text if float(text) >= value else rounded_up(value)


def _power(text: str) -> str:
    """Return 1e-5 as a product with a power of ten."""
    match text.partition("e"):
        case ("inf", "", ""):
            return r"\infty"
        case (number, "e", exponent):
            return f"10^{{{exponent}}}" if number == "1" else f"{number} \\cdot 10^{{{exponent}}}"
    return text


def few_digits(text: str) -> tuple[str, str]:
    """Return a run with its long decimals in six digits, and a note that is empty where none is long.

    Prose has these; JSON and Markdown keep all digits, for what is rounded is not exactly what was accounted.

    >>> few_digits("Poisson(rate=0.011363685131072998046875) * 3520"), few_digits("Poisson(rate=0.01)")
    (('Poisson(rate=0.0113637) * 3520', ' (in 6 digits)'), ('Poisson(rate=0.01)', ''))
    """
    short = _LONG_DECIMAL.sub(lambda found: f"{float(found[0]):.{PROSE_DIGITS}g}", text)
    return short, "" if short == text else f" (in {PROSE_DIGITS} digits)"


def _escape_latex(text: str) -> str:
    """Escape the text for LaTeX, on one line."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return re.sub(r"[\\~^&%$#_{}]", lambda found: special.get(found[0], "\\" + found[0]), _one_line(text))


def _plain(text: str) -> str:
    """Escape the text for Markdown, on one line.

    It has no markup, links, HTML or cells of tables of its own.
    """
    return re.sub(r"[\\`*\[\]<>|~$]|&(?=[\w#])|(?<!\w)_|_(?!\w)", r"\\\g<0>", _one_line(text))


def _code(text: str) -> str:
    """Return the text as code in Markdown, between more backquotes than it has in a row."""
    line = _one_line(text)
    longest = max((len(found) for found in re.findall("`+", line)), default=0)
    return f"`{line}`" if longest == 0 else f"{'`' * (longest + 1)} {line} {'`' * (longest + 1)}"


def _one_line(text: str) -> str:
    """Replace every run of white space, and all that breaks or hides a line, by one space."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _audit_sentence(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "none"
    verdict = "refuted" if found.get("refuted") else "consistent with the claim, which proves nothing"
    return f"{verdict}; {', '.join(f'{name}: {value}' for name, value in found.items())}"
