"""The law of the privacy loss log(p/q), and how to integrate against it.

Read `law` (what may be asked of a law), `subsampled` (what sampling does to a loss), `transform` (moments at complex orders),
`grid` (the loss on a grid) and `sampled_curve` (the Rényi curve of a sampled pair).
"""
