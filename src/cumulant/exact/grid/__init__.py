"""Loss distributions on grids: composition by FFT with every error term.

Read `fft` (one grid, both sides), `refine` (which grid answers a question), `dominated` (pairs below) and `allocation`.
"""
