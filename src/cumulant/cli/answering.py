"""A question of the command line to what is printed and the exit code, whoever has read the line."""

from __future__ import annotations

import json
import math
import sys

from cumulant.accounting.guarantee import Guarantee
from cumulant.cli import words
from cumulant.cli.codes import ExitCode
from cumulant.cli.direct import Asked
from cumulant.domains import DELTA, GUARANTEED
from cumulant.notation import parse
from cumulant.progress import patient


def answer(asked: Asked) -> int:
    """Print the guarantee as it was asked for; 1 where no epsilon is finite."""
    run = parse(asked.expression)
    how = asked.method, asked.bound, asked.conversion, asked.accuracy
    with patient("looking for the best bound"):
        if asked.found == "epsilon":
            found = run.guarantee(DELTA.check("delta", asked.value), *how, prove=asked.prove)
        else:
            given = GUARANTEED.check("epsilon", asked.value)
            found = run.guarantee(None, *how, epsilon=given, prove=asked.prove)
        text = _text(found, asked)
    sys.stdout.write(f"{text}\n")
    return ExitCode.NO if math.isinf(found.epsilon) else ExitCode.OK


def _text(found: Guarantee, asked: Asked) -> str:
    if asked.quiet:
        return words.bare_number(found.epsilon if asked.found == "epsilon" else found.delta)
    if asked.json:
        fields = found.to_dict()
        return json.dumps(fields | {"explanation": found.explain()} if asked.explain else fields)
    return words.explanation(found) if asked.explain else words.answer(found)
