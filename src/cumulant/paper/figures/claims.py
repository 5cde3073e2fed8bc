"""Every sentence the paper writes about its figures, judged.

Section 4, both captions, and the results they illustrate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cumulant.paper.figures import divergence_claims, epsilon_claims
from cumulant.paper.figures.claim import Claim
from cumulant.paper.figures.series import Table


def claims(first: Sequence[Table], second: Sequence[Table]) -> tuple[Claim, ...]:
    """Judge every claim on the tables of Figure 1 and of Figure 2."""
    return (*divergence_claims.claims(first), *epsilon_claims.claims(second))


def markdown(found: Iterable[Claim]) -> str:
    """Return the claims as a table in Markdown."""
    rows = [f"| {claim.statement} | {claim.found} | {claim.criterion} | {claim.verdict} |" for claim in found]
    return "\n".join(
        [
            "# The paper's claims about its figures",
            "",
            "Rate 1/1000; Figure 2 at delta = 1e-8, up to 600,000 rounds. Letters name the panels; panel d is drawn for",
            "both values of sigma that the paper gives for it, 0.5 in the captions and 1 in the text. RDP means the literal",
            "accountant of the paper (Theorem 9, eq. 3), strong composition the closed form of Kairouz, Oh and Viswanath",
            "with the best delta for each round. ε(α) is the curve of the mechanism on all data, ε'(α) that on a sample.",
            "",
            "| claim | found here | counts as true if | holds |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )
