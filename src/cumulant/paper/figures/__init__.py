"""Both figures of the paper, computed and drawn anew, with a table per panel and a verdict on every claim."""
