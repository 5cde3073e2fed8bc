"""Laplace inversion of the moment function of all rounds (docs/line.md).

Read `line` (expectations from a trapezoid sum in balls), `lattice_line` (a finite sum), `decay` (where the sum may end),
`choose` (the line that floats propose), `solver` (from a guess to a proved end) and `settings`;
`float_line` and `batch` do it in float64.
"""
