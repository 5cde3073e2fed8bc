"""Answers from loss laws.

The whole distribution of the privacy loss, from above and from below.

Read `rounds` (what ran), `answer` (the two ends), `closed_form` (one round), then `inversion` (many rounds, proved),
`grid` (loss distributions on grids) and `adaptive` (rounds chosen from earlier answers); `verification` checks an answer again.
"""
