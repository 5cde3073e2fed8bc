"""Rounds that are chosen from earlier answers.

Read `value_iteration` (the optimum of an adversary), `theorem_w` (one order for all rounds), `reference_law` and
`constraints` (the law that Theorem W compares with), and `theorem_w_line` (its proof in balls).
"""
