"""Random allocation beside PLD_accounting: `python benchmarks/allocation_peer.py PEER_PYTHON`.

PEER_PYTHON is the interpreter of an environment in which PLD_accounting is installed. Every setting is asked of both in
processes of their own, both ends, and timed by the time of the processor. Printed are both intervals, the ratio of their
widths and of the seconds; the exit code is 1 if two intervals are disjoint.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

SETTINGS = (
    ("1", 100, 1, 1e-5),
    ("0.5", 100, 1, 1e-5),
    ("0.7", 100, 1, 1e-5),
    ("0.4", 1000, 1, 1e-5),
    ("1", 100, 2, 1e-5),
    ("0.5", 1000, 1, 1e-8),
    ("0.6", 1000, 1, 1e-6),
    ("0.8", 100, 1, 1e-6),
    ("0.5", 300, 1, 1e-6),
    ("1", 50, 1, 1e-5),
)
"""Noise, steps, epochs and delta. Only settings that the peer answers within four minutes.

With sigma 3 and 1000 steps, or sigma 2, 1000 steps and 2 epochs, it was stopped then; ours took less than a second."""

PEER = """
import json, sys, time
from PLD_accounting import gaussian_allocation_epsilon_range
sigma, steps, epochs, delta = json.loads(sys.argv[1])
gaussian_allocation_epsilon_range(delta=1e-3, sigma=3.0, num_steps=2)  # modules that are loaded late
start = time.process_time()
upper, lower = gaussian_allocation_epsilon_range(
    delta=delta, sigma=float(sigma), num_steps=steps, num_epochs=epochs
)
print(json.dumps([lower, upper, time.process_time() - start]))
"""
OURS = """
import json, sys, time
import cumulant as cm
sigma, steps, epochs, delta = json.loads(sys.argv[1])
(cm.Gaussian(sigma=3) @ cm.RandomAllocation(steps=2) * 2).guarantee(delta=1e-3)  # modules that are loaded late
start = time.process_time()
found = (cm.Gaussian(sigma=sigma) @ cm.RandomAllocation(steps=steps) * epochs).guarantee(delta=delta)
print(json.dumps([found.lower, found.epsilon, time.process_time() - start]))
"""


def asked(python: str, script: str, setting: tuple[str, int, int, float]) -> tuple[float, float, float]:
    """Return both ends and the seconds of one accountant."""
    told = subprocess.run([python, "-c", script, json.dumps(setting)], capture_output=True, text=True, check=True)
    lower, upper, seconds = json.loads(told.stdout.strip().splitlines()[-1])
    return lower, upper, seconds


def main(python: str) -> int:
    """Ask both accountants everything and print a table."""
    apart, narrower, faster = 0, [], []
    for setting in SETTINGS:
        ours, peer = asked(sys.executable, OURS, setting), asked(python, PEER, setting)
        apart += not (ours[0] <= peer[1] and peer[0] <= ours[1])
        narrower.append((peer[1] - peer[0]) / (ours[1] - ours[0]))
        faster.append(peer[2] / ours[2])
        print(
            f"sigma {setting[0]}, {setting[1]} steps, {setting[2]} epochs, {setting[3]:g}: [{ours[0]:.5f}, {ours[1]:.5f}] in "
            f"{ours[2]:.2f} s, theirs [{peer[0]:.5f}, {peer[1]:.5f}] in {peer[2]:.1f} s: {narrower[-1]:.0f} times narrower, "
            f"{faster[-1]:.1f} times faster",
            flush=True,
        )
    print(
        f"{len(SETTINGS)} settings, {apart} disjoint; narrower by at least {min(narrower):.0f}, faster by at least "
        f"{min(faster):.1f}, in the median {statistics.median(faster):.1f}"
    )
    return int(apart > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
