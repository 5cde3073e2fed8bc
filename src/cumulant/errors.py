"""The tree of errors.

Every error is one sentence: what, the value, the rule, the next step.

CumulantError
├── InputError            (also a ValueError) a parameter outside its domain
│   ├── NotationError     text that is not an expression, or an expression that has no text
│   ├── RelationError     neighbouring relations that do not go together
│   └── HypothesisError   a theorem was asked for where its hypotheses do not hold
├── CertificateError      a number could not be proved at any allowed precision
├── BudgetRefused         a budget does not allow what was asked; nothing was written
└── LedgerError           a ledger cannot be used: no server, no file, no right, no space
    ├── LedgerBroken      a ledger contradicts itself
    └── KeyConflict       (also an InputError) a key that is taken by another request
"""

from __future__ import annotations


class CumulantError(Exception):
    """The root of every error this library raises on purpose.

    >>> issubclass(InputError, CumulantError) and issubclass(InputError, ValueError)
    True
    """


class InputError(CumulantError, ValueError):
    """A parameter is outside its declared domain; nothing was changed.

    >>> import cumulant as cm
    >>> cm.Gaussian(sigma=-1)
    Traceback (most recent call last):
    ...
    cumulant.errors.InputError: sigma=-1 must be a number in [0, inf)

    Where it is about a text, `text` is that text and `position` the place in it; else they are empty and None.
    """

    text: str = ""
    position: int | None = None


class NotationError(InputError):
    """A text is not an expression of the notation, or an expression cannot be written as text.

    >>> import cumulant as cm
    >>> cm.parse("Gausian(sigma=1)")
    Traceback (most recent call last):
    ...
    cumulant.errors.NotationError: unknown name 'Gausian' at position 0; did you mean 'Gaussian'?
    """


class RelationError(InputError):
    """Statements about different neighbouring relations were mixed.

    >>> import cumulant as cm
    >>> clipped = cm.Gaussian.from_clipping(norm=1, noise=1, relation="add-remove")
    >>> clipped @ cm.WithoutReplacement(rate=0.1)
    Traceback (most recent call last):
    ...
    cumulant.errors.RelationError: WithoutReplacement makes replace-one statements but Gaussian(sigma=1, relation="add-remove") is stated for add-remove; state every sensitivity under one relation, that of a clipped sum by Gaussian(noise_multiplier=…, relation="replace-one")
    """  # noqa: E501


class HypothesisError(InputError):
    """A named theorem does not apply to the mechanism it was asked for.

    >>> import cumulant as cm
    >>> run = cm.ApproximateDP(0.1, 1e-6) @ cm.WithoutReplacement(rate=0.1)
    >>> run.rdp(2, bound="theorem9")
    Traceback (most recent call last):
    ...
    cumulant.errors.HypothesisError: theorem9 does not apply to ApproximateDP(epsilon=0.1, delta=1e-6): it is not proved for a mechanism that carries slack; use bound="best"
    """  # noqa: E501


class CertificateError(CumulantError):
    """A ball stayed too wide at the highest allowed precision, so no number is returned.

    >>> issubclass(CertificateError, ValueError)
    False
    """


class BudgetRefused(CumulantError):
    """A budget does not allow what was asked; nothing was written, and nothing may run.

    `requested` is what was asked, `spent` and `held` are the epsilons that the account answers for so far, without and with
    what is on hold, and `would_fit` says how many of the `asked` equal parts of the request still fit.

    >>> import cumulant as cm
    >>> accountant = cm.Accountant(limit=(1, 1e-6))
    >>> try:
    ...     accountant.compose(cm.Gaussian(sigma=50), times=1000)
    ... except cm.BudgetRefused as refusal:
    ...     refusal.would_fit, refusal.asked, refusal.spent
    (116, 1000, 0.0)
    """

    def __init__(
        self,
        message: str,
        requested: str = "",
        spent: float = 0.0,
        held: float = 0.0,
        would_fit: int = 0,
        asked: int = 1,
    ) -> None:
        super().__init__(message)
        self.requested, self.spent, self.held = requested, spent, held
        self.would_fit, self.asked = would_fit, asked

    def __reduce__(self) -> tuple[type[BudgetRefused], tuple[object, ...]]:
        return BudgetRefused, (str(self), self.requested, self.spent, self.held, self.would_fit, self.asked)


class LedgerError(CumulantError):
    """A ledger cannot be used.

    There is no such file or server, no right to write, no space, or a schema of another version.

    >>> import cumulant as cm
    >>> issubclass(cm.LedgerBroken, cm.LedgerError) and issubclass(cm.KeyConflict, cm.InputError)
    True
    """


class LedgerBroken(LedgerError):
    """A ledger contradicts itself: what it holds was changed, or cannot be read.

    >>> import cumulant as cm
    >>> issubclass(cm.LedgerBroken, cm.LedgerError)
    True
    """


class KeyConflict(LedgerError, InputError):
    """A key was used before, for another request or by another process.

    `receipt` is what it was used for.

    >>> import cumulant as cm, tempfile
    >>> account = cm.Ledger(f"sqlite:///{tempfile.mkdtemp()}/budget.db").create("patients", epsilon=1, delta=1e-6)
    >>> receipt = account.spend(cm.PureDP("0.1"), key="monday")
    >>> account.spend(cm.PureDP("0.2"), key="monday")
    Traceback (most recent call last):
    ...
    cumulant.errors.KeyConflict: ...
    """

    receipt: object = None


def shown(value: object) -> str:
    """Return a value in brief for a message, whatever it is and says of itself.

    >>> shown([1, 2]), len(shown("x" * 100))
    ('[1, 2]', 40)
    """
    try:
        text = repr(value)
    except Exception:  # of a user's object, or of an integer with more digits than Python prints
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 40 else text[:37] + "..."
