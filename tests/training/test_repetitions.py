"""K has exactly its law: against closed forms, and where the first bits do not decide it."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import cumulant as cm
from cumulant.training import draw_repetitions


def stream(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return lambda size: rng.bytes(size)


def negative_binomial(shape: float, share: float) -> Any:
    law = stats.nbinom(shape, share)
    return lambda k: law.pmf(k) / (1 - law.pmf(0)) if k else 0.0


@pytest.mark.parametrize(
    ("scheme", "pmf"),
    [
        (cm.RepeatAndSelect(mean=3), stats.geom(1 / 3).pmf),
        (cm.RepeatAndSelect(mean="2.5", number="poisson"), stats.poisson(2.5).pmf),
        # the mean is eta (1 - g) / (g (1 - g^eta)): 6.4 at g = 1/4 and eta = 2, 3 at eta = 1/2
        (cm.RepeatAndSelect(mean="6.4", shape=2), negative_binomial(2, 0.25)),
        (cm.RepeatAndSelect(mean=3, shape="1/2"), negative_binomial(0.5, 0.25)),
        (cm.RepeatAndSelect(mean=str(float(stats.logser(0.75).mean())), shape=0), stats.logser(0.75).pmf),
    ],
    ids=["geometric", "Poisson", "shape 2", "shape 1/2", "logarithmic"],
)
def test_the_law_of_k(scheme: Any, pmf: Any) -> None:
    source = stream(1)
    drawn = np.array([draw_repetitions(scheme, source) for _ in range(8000)])
    values = np.arange(0, 12)
    expected = np.array([pmf(k) for k in values])
    counts = np.array([np.sum(drawn == k) for k in values])
    used = expected > 0
    assert not counts[~used].any()
    rest = 1 - expected[used].sum()
    p = stats.chisquare([*counts[used], 8000 - counts.sum()], [*(8000 * expected[used]), 8000 * rest]).pvalue
    assert p > 1e-3


def test_further_bits_decide_where_the_first_do_not() -> None:
    """P[K <= 1] = 1/3: the first 64 bits of 1/3 leave it open whether K is 1 or 2."""
    first = (2**64 // 3).to_bytes(8, "little")

    def bits(second: int) -> Any:
        given = iter([first, second.to_bytes(8, "little")])
        return lambda size: next(given)

    scheme = cm.RepeatAndSelect(mean=3)
    assert draw_repetitions(scheme, bits(2**64 // 3 - 1)) == 1
    assert draw_repetitions(scheme, bits(2**64 // 3 + 1)) == 2
    with pytest.raises(cm.CertificateError, match="source of randomness"):
        draw_repetitions(cm.RepeatAndSelect(mean="1.1"), lambda size: b"\xff" * size)  # U = 1


def test_what_is_no_scheme_is_refused() -> None:
    with pytest.raises(cm.InputError, match="RepeatAndSelect"):
        draw_repetitions(cm.Poisson(rate="1/2"))  # type: ignore[arg-type]
