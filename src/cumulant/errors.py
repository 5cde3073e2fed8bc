"""What can go wrong, as a tree. Every error is one sentence: what, the value, the rule, the next step.

CumulantError
├── InputError            (also a ValueError) a parameter outside its domain
│   ├── NotationError     text that is not an expression, or an expression that has no text
│   ├── RelationError     neighbouring relations that do not go together
│   └── HypothesisError   a theorem was asked for where its hypotheses do not hold
└── CertificateError      a number could not be proved at any allowed precision
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
    cumulant.errors.InputError: sigma=-1 must be a number in (0, inf)
    """


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
    cumulant.errors.RelationError: WithoutReplacement makes replace-one statements but Gaussian(sigma=1, relation="add-remove") is stated for add-remove; state every sensitivity under one relation, that of a clipped sum by Gaussian.from_clipping(norm, noise, relation="replace-one")
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


def shown(value: object) -> str:
    """A value as it stands in a message: in brief, whatever it is and says of itself.

    >>> shown([1, 2]), len(shown("x" * 100))
    ('[1, 2]', 40)
    """
    try:
        text = repr(value)
    except Exception:  # of a user's object, or of an integer with more digits than Python prints
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 40 else text[:37] + "..."
