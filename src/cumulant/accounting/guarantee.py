"""The answer, and where it came from."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cumulant.accounting.choices import Method
from cumulant.accounting.numbers import brief, rounded_up
from cumulant.accounting.plan import Evidence, Plan
from cumulant.errors import CertificateError, InputError

if TYPE_CHECKING:
    from cumulant.conversion.verify import Verification


_COLUMNS = (
    "run",
    "relation",
    "asked",
    "epsilon",
    "delta",
    "lower",
    "rigour",
    "route",
    "method",
    "witness",
)
"""The attributes that are columns of a table of guarantees."""

_NO_EVIDENCE = Evidence(None, "", ())
"""The evidence of a guarantee whose file has none."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Guarantee:
    """(epsilon, delta)-differential privacy with its provenance.

    >>> import cumulant as cm
    >>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000
    >>> answer = run.guarantee(delta=1e-8)
    >>> answer.lower, answer.epsilon, answer.route, str(answer.relation)
    (0.7925, 0.807, 'cone', 'replace-one')
    >>> by_curve = run.guarantee(delta=1e-8, method="rdp")
    >>> by_curve.evidence.order, by_curve.route, by_curve.rigour, by_curve.verify().holds
    (35.6, 'cks', 'proved', True)

    `asked` is "delta" or "epsilon": which of the two was given; the other one was found, and rounded up. `lower` is in the unit
    of the number that was found: no claim can undercut it, as the data sets named in `witness` show. It is None if no such
    data sets are known. `lower_rigour` says how it is known: `proved` where its data sets are a pair, `bounded` on a grid.

    >>> found = run.guarantee(epsilon=1)
    >>> found.asked, found.epsilon, found.lower <= found.delta == run.delta(epsilon=1)
    ('epsilon', 1.0, True)

    `route` names the argument that produced the answer: a conversion of Rényi divergences, or a way of the exact layer.
    `evidence` has its numbers. `note` says why the answer does not come from where it was asked for.

    `to_json` keeps everything that is needed to verify a guarantee years later in another process, and a guarantee can be
    pickled; a Python function in the run stays behind, and then it can no longer be verified.

    >>> Guarantee.from_json(answer.to_json()).verify().holds
    True
    """

    epsilon: float
    delta: float
    lower: float | None
    rigour: str
    route: str
    relation: str
    method: Method
    witness: str = ""
    note: str = ""
    asked: str = "delta"
    lower_rigour: str = ""
    written_run: str = ""
    """The text of the run that a file names; used if the plan was left behind, as the two fields below."""
    written_evidence: Evidence = _NO_EVIDENCE
    written_assumptions: tuple[str, ...] = ()
    plan: Plan | None = None

    @classmethod
    def of(cls, plan: Plan) -> Guarantee:
        """Return the guarantee of a plan."""
        epsilon, delta = plan.statement
        found = plan.answer
        return cls(
            epsilon=epsilon,
            delta=delta,
            lower=plan.lower,
            rigour=found.rigour,
            route=found.way,
            relation=plan.run.relation,
            method=plan.question.method,
            witness=plan.witness,
            note=found.note,
            asked=plan.question.asked,
            lower_rigour=plan.lower_rigour,
            plan=plan,
        )

    @property
    def run(self) -> str:
        """Return the text of the run.

        >>> import cumulant as cm
        >>> (cm.PureDP(1) * 3).guarantee(delta=0).run
        'PureDP(epsilon=1) * 3'
        """
        return self.written_run if self.plan is None else self.plan.run.text

    @property
    def evidence(self) -> Evidence:
        """Return the numbers behind the guarantee."""
        if self.plan is None:
            return self.written_evidence
        proof = self.plan.answer.proof
        bits, radius = (None, None) if proof is None else (proof.bits, proof.radius)
        return Evidence(self.plan.answer.order, self.plan.bound, self.plan.terms, bits, radius)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Return what must be true of the run, and no theorem can know: one sentence each.

        >>> import cumulant as cm
        >>> "sensitivity" in " ".join(cm.Gaussian(sigma=1).guarantee(delta=1e-5).assumptions)
        True
        """
        from cumulant.accounting.text import assumptions

        return self.written_assumptions if self.plan is None else tuple(assumptions(self.plan.run))

    @property
    def proof(self) -> Plan:
        """The plan; CertificateError where it was left behind."""
        if self.plan is None:
            raise CertificateError(
                "this guarantee came without its plan: the run holds a Python function, which was not pickled or written with "
                "it; verify it where it was made"
            )
        return self.plan

    def verify(self) -> Verification:
        """Evaluate the statement again by another route than the one that found it.

        From the stored plan and the exact inputs.

        Of Rényi bounds, finite sums and closed forms are evaluated in decimal intervals of the standard library, others in
        balls at four times the precision. Of the exact layer, closed forms are evaluated in balls at four times the precision,
        what is proved along the line in balls on a line of another order and period, with other nodes and twice the bits, and
        grids along the saddle line, which shares neither grid nor transform with them and is self-checked. The optimum of
        adaptive rounds is enclosed again by a recursion under the other law, on another grid; Theorem W is proved again by
        other laws, mostly at another order n, along another line.
        Where the spectrum does not decay, as with few rounds and with losses on a lattice, no second route is open: the same
        code runs on a finer grid, and the result says so, `independent` is False, and `note` names the lower end and the
        Rényi bound between which the answer lies. CertificateError where nothing was proved.

        >>> import cumulant as cm
        >>> check = cm.Laplace(scale=2).guarantee(delta=1e-6, method="rdp").verify()
        >>> bool(check), check.arithmetic
        (True, 'decimal')
        >>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000
        >>> check = run.guarantee(delta=1e-8).verify()
        >>> bool(check), check.arithmetic, check.independent
        (True, 'balls', True)
        """
        if not (self.epsilon >= 0 and 0 <= self.delta <= 1):
            raise CertificateError(
                f"epsilon={self.epsilon!r} with delta={self.delta!r} is no statement about privacy: epsilon is at least 0 and "
                "delta a probability"
            )
        from cumulant.accounting.verification import verified

        found = verified(self.proof, self.epsilon, self.delta)
        return replace(found, epsilon=self.epsilon, delta=self.delta)

    def lower_confirmed(self) -> bool | None:
        """Return True if explicit data sets still need almost as much as the lower end says.

        None where there is no lower end.
        """
        from cumulant.accounting.verification import lower_confirmed

        return lower_confirmed(self.proof)

    def explain(self) -> str:
        """Explain what proves the guarantee.

        Theorems, order, conversion, arithmetic, exact inputs, assumptions, rigour.

        >>> import cumulant as cm
        >>> print(cm.PureDP(1).guarantee(delta=0).explain().splitlines()[-1])
        Rigour: proved, which means: every step was enclosed, rounding included, so the exact value ... at most this number.
        """
        from cumulant.accounting import explanation

        if self.plan is None:
            return explanation.left_behind(self.run, self.asked, self.epsilon, self.delta, self.rigour)
        return explanation.explanation(self.plan, self.epsilon, self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, infinity as the text "inf".

        With the versions, the exact question, the plan and what is assumed; the file `guarantee.schema.json` of the
        package describes them.
        """
        from cumulant.accounting import serialization

        return serialization.written(self)

    def row(self) -> dict[str, Any]:
        """Return one row of a table, plain values only.

        For `pandas.DataFrame([each.row() for each in guarantees])`, or polars.

        >>> import cumulant as cm
        >>> found = cm.PureDP(1).guarantee(delta=0).row()
        >>> found["run"], found["epsilon"], found["rigour"]
        ('PureDP(epsilon=1)', 1.0, 'proved')
        """
        known = {name: str(value) if isinstance(value := getattr(self, name), str) else value for name in _COLUMNS}
        return known | {"order": self.evidence.order, "bound": self.evidence.bound}

    def _compared(self) -> tuple[Any, ...]:
        """Return everything that equality means: the statement, the run and the evidence, and not what a file adds."""
        statement = self.epsilon, self.delta, self.asked, self.lower, self.lower_rigour, self.witness
        return *statement, self.rigour, self.route, self.relation, self.method, self.note, self.run, self.evidence

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guarantee) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        return (
            f"Guarantee(epsilon={self.epsilon!r}, delta={self.delta!r}, lower={self.lower!r}, rigour={self.rigour!r}, "
            f"run={brief(self.run)!r})"
        )

    def __str__(self) -> str:
        return format(self, "")

    def __format__(self, spec: str) -> str:
        """The number that was asked for, rounded up to as many digits as the format says.

        >>> import cumulant as cm
        >>> found = cm.Gaussian(sigma=1).guarantee(delta=1e-5)
        >>> f"{found}", f"{found:.2}"
        ('epsilon = 4.378 at delta = 1e-5', 'epsilon = 4.4 at delta = 1e-5')
        """
        digits = spec.removeprefix(".") or "4"
        if not (digits.isascii() and digits.isdigit() and 1 <= int(digits[:3]) <= 17):
            raise InputError(f"{spec!r} is no format of a guarantee; give the number of digits, like .3")
        value, given, name = self.epsilon, self.delta, "delta"
        if self.asked == "epsilon":
            value, given, name = self.delta, self.epsilon, "epsilon"
        found = "delta" if name == "epsilon" else "epsilon"
        return f"{found} = {rounded_up(value, int(digits))} at {name} = {rounded_up(given, 17)}"

    def _repr_html_(self) -> str | None:
        from cumulant.accounting import notebook

        return None if self.plan is None else notebook.guarantee(self.plan)

    def to_json(self) -> str:
        """Return the fields as one JSON object."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Guarantee:
        """Read the guarantee that `to_json` wrote, ready to be verified.

        InputError where the text is not one.
        """
        from cumulant.accounting import serialization

        fields, plan = serialization.read(text)
        return cls(**fields, plan=plan)

    def __reduce__(self) -> tuple[Any, ...]:
        return Guarantee.from_json, (self.to_json(),)
