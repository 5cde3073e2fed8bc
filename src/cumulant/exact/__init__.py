"""Answers from loss laws: the whole distribution of the privacy loss, from both sides.

Read `rounds` (what ran), `answer` (the two ends), `closed_form` (one round), `test_functions` (whose expectations bound delta),
then `inversion` (many rounds, proved), `grid` (loss distributions on grids) and `adaptive` (rounds chosen from earlier
answers); `verification` checks an answer by a second route.
"""
