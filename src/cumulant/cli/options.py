"""Options and arguments that several commands share; loading this file loads nothing of the library."""

from __future__ import annotations

from typing import Annotated

import typer

from cumulant.accounting.choices import BOUND_NAMES, CONVERSION_NAMES, METHOD_NAMES
from cumulant.cli.completion import complete, complete_expression

Run = Annotated[
    str,
    typer.Argument(metavar="EXPR", help="What ran, in quotes.", show_default=False, autocompletion=complete_expression),
]
Method = Annotated[
    str,
    typer.Option(help=f"The accountant: {', '.join(METHOD_NAMES)}.", autocompletion=complete(METHOD_NAMES)),
]
Bound = Annotated[
    str | None,
    typer.Option(
        help="The amplification bound, such as theorem9; see: cumulant bounds.", autocompletion=complete(BOUND_NAMES)
    ),
]
Conversion = Annotated[
    str | None,
    typer.Option(
        help=f"From Rényi orders to epsilon: {', '.join(CONVERSION_NAMES)}.", autocompletion=complete(CONVERSION_NAMES)
    ),
]
Accuracy = Annotated[str, typer.Option(help="The share of epsilon that the computation may add.")]
Explain = Annotated[bool, typer.Option("--explain", help="Add the proof: theorem, order, arithmetic, assumptions.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the number alone.")]
Prove = Annotated[bool, typer.Option("--prove", help="Ask for a proof even where that takes more than a second.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object; infinity is the text 'inf'.")]
