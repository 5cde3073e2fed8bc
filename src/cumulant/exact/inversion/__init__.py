"""Laplace inversion of the moment function of all rounds (docs/line.md).

Read `line` (delta from a trapezoid sum in balls), `decay` (where the sum may end), `choose` (the line that floats propose),
`bracket` (from a guess to a proved end) and `solver` (the answer); `float_line` and `batch` do it in float64.
"""
