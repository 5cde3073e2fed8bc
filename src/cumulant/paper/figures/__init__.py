"""Both figures of the paper, computed and drawn anew.

With a table per panel and a verdict on every claim.
"""
