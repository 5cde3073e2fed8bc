"""The first mechanism of CONTRIBUTING.md is a whole file that works as the page says."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

CHECKS = """
import math, pickle
from fractions import Fraction
import cumulant as cm
import noisy_histogram

kind = noisy_histogram.NoisyHistogram
assert abs(kind(sigma=4).rdp(2) - 0.125) < 1e-12  # the example of its docstring
made = kind(sigma="2.0")
assert made.sigma == Fraction(2) and str(made) == "NoisyHistogram(sigma=2.0)"
assert cm.parse("NoisyHistogram(sigma=2)") == made == pickle.loads(pickle.dumps(made))
assert hash(kind(2)) == hash(made) and made != kind(3)

def delta(mu, epsilon):  # of N(0, 1) against N(mu, 1), Balle and Wang 2018
    tail = lambda x: math.erfc(x / math.sqrt(2)) / 2
    return tail(epsilon / mu - mu / 2) - math.exp(epsilon) * tail(epsilon / mu + mu / 2)

assert abs(made.delta(epsilon=1) - delta(math.sqrt(2) / 2, 1)) < 1e-12
assert (made @ cm.WithoutReplacement(rate="0.01") * 10).epsilon(1e-6) < (made * 10).epsilon(1e-6)
found = cm.calibrate("NoisyHistogram(sigma=?)", epsilon=1, delta=1e-6)
assert abs(delta(math.sqrt(2) / float(found.value), 1) / 1e-6 - 1) < 1e-2
for wrong in (0, -1, "two", None):
    try:
        kind(sigma=wrong)
    except cm.InputError as error:
        assert str(error).startswith("sigma=")
    else:
        raise AssertionError(wrong)
try:
    made @ cm.Poisson(rate="0.1")
except cm.RelationError:
    pass
else:
    raise AssertionError("a replace-one sensitivity on Poisson samples")
"""


def test_the_first_mechanism_runs(tmp_path: Path) -> None:
    """In a process of its own: a registered mechanism is part of every law from then on."""
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    (tmp_path / "noisy_histogram.py").write_text(blocks[0], encoding="utf-8")
    ran = subprocess.run([sys.executable, "-c", CHECKS], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_every_target_has_a_row() -> None:
    targets = set(re.findall(r"^([a-z-]+):.* ## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    rows = set(re.findall(r"^\| `make ([a-z-]+)` \|", PAGE, re.MULTILINE))
    assert rows <= targets
    assert {"test", "lint", "docs", "run"} <= rows
