"""Balls in bins with correlated noise: the proved bound beside JAX Privacy's Monte Carlo, in one run.

python benchmarks/correlated_noise.py needs jax-privacy 2.0.0. Their time is that of one sample here, times the samples that
their own `minimum_samples_to_calibrate` asks for at this delta and half of it, for both directions.
"""

import time

import numpy as np
from jax_privacy import batch_selection
from jax_privacy.experimental.monte_carlo import delta_calculation, sample_generation

import cumulant as cm

BANDS, STEPS, BINS, SIGMA, DELTA, SAMPLES = (1.0, 0.5), 1000, 100, 4.0, 1e-6, 400


def main() -> None:
    """Print both times and the two numbers."""
    run = cm.MatrixMechanism(bands=list(BANDS), steps=STEPS, sigma=SIGMA) @ cm.BallsInBins(bins=BINS)
    start = time.perf_counter()
    epsilon = run.epsilon(DELTA)
    ours = time.perf_counter() - start
    strategy = batch_selection.BallsInBinsSampling(STEPS, BINS)
    start = time.perf_counter()
    sample_generation.get_privacy_loss_sample(strategy, SIGMA, np.array(BANDS), seed=1, num_samples=SAMPLES)
    each = (time.perf_counter() - start) / SAMPLES
    needed = delta_calculation.minimum_samples_to_calibrate(DELTA / 2, DELTA)
    theirs = 2 * needed * each
    print(f"proved epsilon {epsilon:.4f} at delta {DELTA:g}: {ours:.2f} s, all numbers of classes")
    print(f"Monte Carlo: {needed:,} samples, {each:.2e} s each, both directions: {theirs:,.0f} s")
    print(f"ratio {theirs / ours:,.0f}")


if __name__ == "__main__":
    main()
