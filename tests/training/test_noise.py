"""Clipping keeps its sensitivity whatever comes in, and noise is rounded as the ideal one is."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import cumulant as cm
from cumulant.numerics.arithmetic import BALLS
from cumulant.training import clipped, noise, rounded_gaussian
from cumulant.training.noise import exact_noise, fast_noise, quick_noise, secret_bytes
from tests.effort import drawn


def stream(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return lambda size: rng.bytes(size)


def squares(row: Any) -> int:
    return sum(int(value) ** 2 for value in np.asarray(row).tolist())


# ---- clipping


ADVERSARIAL: list[list[float]] = [
    [math.nan, 1, 0, 0],
    [math.inf, 0, 0, 0],
    [-math.inf, math.inf, 1, 1],
    [1e308, 1e308, 1e308, 1e308],
    [5e-324, 0, 0, 0],
    [1, 0, 0, 0],
    [-1, 0, 0, 0],
    [np.nextafter(1, 2), 0, 0, 0],
    [0.5, 0.5, 0.5, 0.5],
    [-9.3e18, 0, 0, 0],
    [2.0**63, -(2.0**63), 0, 0],
    [0, 0, 0, 0],
]


@pytest.mark.parametrize("grid", [None, "1/3", 1, "0.7", "1/16000057"])
def test_no_row_is_longer_than_the_norm(grid: str | int | None) -> None:
    rng = np.random.default_rng(3)
    rows = np.vstack([np.array(ADVERSARIAL), rng.normal(size=(200, 4)) * np.exp(rng.normal(size=(200, 1)) * 20)])
    found = clipped(rows, norm=1, grid=grid)
    units = Fraction(1) / (Fraction(1, 2**20) if grid is None else Fraction(grid))
    assert found.dtype == np.int64
    for row in found:
        assert squares(row) <= units**2


@pytest.mark.parametrize("entries", [10**5, 10**7])
@pytest.mark.parametrize("kind", ["random", "equal"])
def test_long_rows_are_summed_exactly(kind: str, entries: int) -> None:
    """Equal entries whose norm is just above the bound are the worst case for rounding, in the norm and to the grid."""
    equal = np.full((1, entries), np.nextafter(1 / math.sqrt(entries), 1.0))
    rows = np.random.default_rng(entries).normal(size=(1, entries)).astype(np.float32) if kind == "random" else equal
    found = clipped(rows, norm=1)[0]
    total = sum(int(np.dot(part, part)) for part in np.split(found, 10))  # of a part below 2^63 whatever was clipped
    assert total <= 2**40
    # cut towards zero: at most one unit per entry is lost, and here each entry is far from the cut
    assert math.sqrt(total) > 2**20 - math.sqrt(entries)


def test_a_sum_of_squares_that_wraps_is_seen() -> None:
    """2^24 entries of 2^20 have squares that sum to 2^64, which is 0 in 64 bits."""
    from cumulant.training.noise import _within

    row = np.full(2**24, 2**20, dtype=np.int64)
    assert int(np.sum(row * row)) == 0
    assert not _within(row[None], Fraction(2**20)).any()
    several = np.array([[np.iinfo(np.int64).min, 0], [2**20, 0], [2**20, 1], [0, 0], [-(2**20), 0]])
    assert _within(several, Fraction(2**20)).tolist() == [False, True, False, True, True]
    assert _within(np.zeros((3, 0), dtype=np.int64), Fraction(5)).all()


def test_many_rows_are_clipped_as_each_alone() -> None:
    """Blocks of rows end anywhere; wide rows are longer than a block."""
    rng = np.random.default_rng(4)
    for shape in ((3, 2**18 + 5), (700, 1000), (5, 0)):
        rows = rng.normal(size=shape) * np.exp(5 * rng.normal(size=(shape[0], 1)))
        rows[1:2, :1] = math.nan
        together = clipped(rows, norm=2)
        assert all(np.array_equal(together[i], clipped(rows[i : i + 1], norm=2)[0]) for i in range(0, len(rows), 99))
        assert together.any() == bool(shape[1])


def test_an_offender_is_set_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever floats have made of it: here they clip to one per cent more than the norm."""
    monkeypatch.setattr(noise, "MARGIN", -0.01)
    found = clipped([[3.0, 4.0], [0.3, 0.4]], norm=1, grid="1/1000")
    assert found.tolist() == [[0, 0], [300, 400]]


def test_rows_that_are_not_numbers_count_as_nothing() -> None:
    found = clipped(ADVERSARIAL, norm=1)
    assert not found[0].any()
    assert not found[1].any()
    assert not found[2].any()
    assert found[5].tolist() == [2**20, 0, 0, 0] or found[5][0] >= 2**20 - 2


def test_short_rows_keep_their_values() -> None:
    found = clipped([[0.25, -0.125], [0.3, 0.4]], norm=1, grid="1/1024")
    assert found.tolist() == [[256, -128], [307, 409]]


def test_one_record_moves_the_sum_by_two_norms_at_most() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(50, 30)) * 100
    other = rows.copy()
    other[7] = -other[7]
    moved = clipped(rows, norm=1).sum(axis=0) - clipped(other, norm=1).sum(axis=0)
    assert (2 * 2**20 * 0.999) ** 2 < squares(moved) <= (2 * 2**20) ** 2


@pytest.mark.parametrize(
    ("gradients", "grid"), [([1.0, 2.0], None), ([["a"]], None), ([[1.0]], 2), ([[1.0]], "1e-12"), ([[1.0]], 0)]
)
def test_what_is_no_gradient_is_refused(gradients: Any, grid: Any) -> None:
    with pytest.raises(cm.InputError):
        clipped(gradients, norm=1, grid=grid)


# ---- noise


def by_balls(word: int, sigma: Fraction) -> set[int]:
    """The nearest integers to sigma Z at both ends of the cell of a word, by erfc and not by its inverse."""
    from flint import arb

    low, found = word & (2**63 - 1), set()
    guess = float(sigma) * -float(special.ndtri(low * 2.0**-64)) if low else 0.0
    with BALLS.at(160):
        scale = BALLS.number(sigma)
        for end in (low, low + 1):
            p = arb(end) / arb(2) ** 64
            for k in (round(guess) - 1, round(guess), round(guess) + 1):
                # k is nearest if P[normal > (k + 1/2) / sigma] < p < P[normal > (k - 1/2) / sigma]
                above, below = ((arb(k) + arb(half)) / scale / arb(2).sqrt() for half in (0.5, -0.5))
                if above.erfc() / 2 < p < below.erfc() / 2:
                    found.add(-k if word >> 63 else k)
    return found


def all_nearest(words: list[int], values: list[int], sigma: Fraction) -> bool:
    """Each value is the nearest integer to sigma Z on the whole cell of its word: two tails hold the cell between them."""
    from flint import arb

    with BALLS.at(160):
        scale, cells = BALLS.number(sigma) * arb(2).sqrt(), arb(2) ** 64
        for word, value in zip(words, values, strict=True):
            low, k = word & (2**63 - 1), arb(-value if word >> 63 else value)
            above, below = ((k + arb(half)) / scale for half in (0.5, -0.5))
            if not (above.erfc() / 2 < arb(low) / cells and arb(low + 1) / cells < below.erfc() / 2):
                return False
    return True


@pytest.mark.parametrize(
    ("sigma", "draws"), [("3/2", 4_000), (2**20 * 17, 12_000), ("1e-3", 1_000), (2**36, 5_000)], ids=str
)
def test_what_floats_decide_is_what_balls_find(sigma: Any, draws: int) -> None:
    scale = Fraction(sigma)
    words = np.frombuffer(stream(11)(8 * drawn(draws)), dtype="<u8")
    found, undecided = fast_noise(words, scale)
    assert undecided.mean() < 0.02
    assert all_nearest(words[~undecided].tolist(), found[~undecided].tolist(), scale)


@pytest.mark.parametrize(
    ("sigma", "draws"), [("3/2", 1_500), (2**20 * 3, 4_000), ("1e-3", 1_000), (2**25, 2_000)], ids=str
)
def test_what_32_bits_decide_is_decided_for_all_further_bits(sigma: Any, draws: int) -> None:
    scale, draws = Fraction(sigma), drawn(draws)
    rng = np.random.default_rng(21)
    # as many small words as large ones: in all octaves, and on both sides of their ends
    sizes = 2.0 ** rng.uniform(14, 31, draws // 2)
    small = (sizes.astype(np.int64) - (2**31) * rng.integers(0, 2, draws // 2)).astype(np.int32)
    ends = np.array([s * 2**k + d for k in range(15, 31) for d in (-1, 0, 1) for s in (1, -1)], dtype=np.int32)
    words = np.concatenate([np.frombuffer(stream(22)(2 * draws), dtype="<i4"), small, ends])
    found, places = quick_noise(words, scale)
    decided = np.setdiff1d(np.arange(len(words)), places)
    assert len(decided) > len(words) / 4
    high, values = words[decided].view(np.uint32).tolist(), found[decided].tolist()
    for low in (0, 2**32 - 1):
        assert all_nearest([(word << 32) | low for word in high], values, scale)


def test_a_neighbour_is_not_the_nearest() -> None:
    words = np.frombuffer(stream(11)(8 * 50), dtype="<u8")
    found, undecided = fast_noise(words, Fraction(2**20))
    some, values = words[~undecided].tolist(), found[~undecided].tolist()
    assert all_nearest(some, values, Fraction(2**20))
    for word, value in zip(some, values, strict=True):
        assert by_balls(word, Fraction(2**20)) == {value}
        assert not any(all_nearest([word], [value + step], Fraction(2**20)) for step in (-1, 1))


def test_few_draws_need_more_than_32_bits() -> None:
    words = np.frombuffer(stream(23)(4 * 10**6), dtype="<i4")
    assert len(quick_noise(words, Fraction(2**22))[1]) < 0.03 * 10**6


def test_threads_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.frombuffer(stream(24)(4 * 300_001), dtype="<i4")
    found = []
    for processors in (1, 2, 5):
        monkeypatch.setattr(noise, "_processors", lambda count=processors: count)
        found.append(quick_noise(words, Fraction(2**20)))
    for values, places in found[1:]:
        assert np.array_equal(places, found[0][1])
        decided = np.setdiff1d(np.arange(len(words)), places)
        assert np.array_equal(values[decided], found[0][0][decided])
    assert rounded_gaussian(np.zeros(0, dtype=int), 1).shape == (0,)


@pytest.mark.parametrize("sigma", [2**20, 2**29])
def test_a_number_is_that_of_its_64_bits(sigma: int) -> None:
    """Whether 32 bits decided it or not: the bits that are taken later continue those that were taken first."""
    taken: list[bytes] = []

    def source(size: int) -> bytes:
        taken.append(stream(25 + len(taken))(size))
        return taken[-1]

    found = rounded_gaussian(np.zeros(50_000, dtype=int), sigma, source=source)
    if sigma > 2**25:
        words = np.frombuffer(taken[0], dtype="<u8")
    else:
        first = np.frombuffer(taken[0], dtype="<i4")
        _, places = quick_noise(first, Fraction(sigma))
        low = np.zeros(50_000, dtype=np.uint64)
        low[places] = np.frombuffer(taken[1], dtype="<u4")
        words = (first.view(np.uint32).astype(np.uint64) << np.uint64(32)) | low
    expected, undecided = fast_noise(words, Fraction(sigma))
    assert undecided.sum() < 10
    assert np.array_equal(found[~undecided], expected[~undecided])


@pytest.mark.parametrize("sigma", [Fraction(3, 2), Fraction(2**20 * 17), Fraction(2**36)], ids=str)
def test_cells_that_hold_a_boundary_are_left_to_balls(sigma: Fraction) -> None:
    """P[normal > (k + 1/2) / sigma] lies in the cell of a word: both roundings are possible there."""
    from flint import arb

    words = []
    with BALLS.at(200):
        for share in (0.01, 0.3, 1.0, 2.5, 4.0):
            k = int(share * sigma)
            tail = ((arb(k) + arb(0.5)) / BALLS.number(sigma) / arb(2).sqrt()).erfc() / 2
            words.append(int((tail * arb(2) ** 64).floor().unique_fmpz()))
    found, undecided = fast_noise(np.array(words, dtype=np.uint64), sigma)
    assert undecided.all(), found
    for word in words:
        assert len(by_balls(word, sigma)) == 2
        drawn = {exact_noise(word, sigma, stream(seed)) for seed in range(40)}
        assert drawn <= by_balls(word, sigma)


def test_what_floats_do_not_decide_is_decided_by_further_bits() -> None:
    words = np.frombuffer(stream(12)(8 * 20_000), dtype="<u8")
    scale = Fraction(2**40)
    _noise, undecided = fast_noise(words, scale)
    assert 10 < undecided.sum() < 20_000
    for word in words[undecided][:50].tolist():
        assert exact_noise(word, scale, stream(1)) in by_balls(word, scale)
    tiny = [exact_noise(word, scale, stream(2)) for word in (0, 1, 2**39, 2**63)]
    assert tiny[0] > tiny[1] > tiny[2] > 0 > tiny[3]
    assert tiny[0] > 9.1 * 2**40  # P[normal > 9.1] < 2^-64


def test_the_law_of_rounded_noise() -> None:
    """Cells of round(sigma Z) have the probabilities of the ideal mechanism, from any integer sum."""
    found = rounded_gaussian(np.full(200_000, 5), sigma="3/2", source=stream(13)) - 5
    cells = np.arange(-5, 6)
    ideal = stats.norm.cdf((cells + 0.5) / 1.5) - stats.norm.cdf((cells - 0.5) / 1.5)
    counts = np.array([np.sum(found == cell) for cell in cells])
    rest, outside = len(found) - counts.sum(), 1 - ideal.sum()
    p = stats.chisquare([*counts, rest], len(found) * np.array([*ideal, outside])).pvalue
    assert p > 1e-3
    large = rounded_gaussian(np.zeros(50_000, dtype=int), sigma=2**20, source=stream(14)) / 2**20
    assert stats.kstest(large, "norm").pvalue > 1e-3


def test_float_noise_tells_neighbours_apart_and_rounded_noise_does_not() -> None:
    """The event that the last bits of a float sum give away: |y| < 1/4, and y is no multiple of 2^-24."""
    draws, unit = 200_000, 2.0**-24
    rng = np.random.default_rng(15)
    floats = [np.float32(s) + rng.normal(size=draws).astype(np.float32) for s in (0.0, 1.0)]
    leaks = [float(np.mean((np.abs(y) < 0.25) & (np.fmod(y.astype(float), unit) != 0))) for y in floats]
    assert leaks[0] > 0.1
    assert leaks[1] == 0
    # the same sums on the grid of the clipped ones: the finest bits that are released have one law for both
    sums = [np.full(draws, s * 2**20) for s in (0, 1)]
    released = [rounded_gaussian(s, sigma=2**20, source=stream(16 + i)) for i, s in enumerate(sums)]
    for modulus in (2, 3, 8, 1024):
        ones, others = ([int(np.sum(y % modulus == 1)) for y in released], draws)
        assert stats.fisher_exact(np.array([[ones[0], others - ones[0]], [ones[1], others - ones[1]]])).pvalue > 1e-3
    near = [int(np.sum((np.abs(y) < 2**18) & (y % 2 == 1))) for y in released]
    ideal = [(stats.norm.cdf(0.25 - s) - stats.norm.cdf(-0.25 - s)) / 2 for s in (0, 1)]
    for count, probability in zip(near, ideal, strict=True):
        assert stats.binomtest(count, draws, probability).pvalue > 1e-3


def test_secret_bits_are_taken_by_default() -> None:
    one, other = (rounded_gaussian(np.zeros(8, dtype=int), sigma=10**6) for _ in range(2))
    assert one.tolist() != other.tolist()
    assert secret_bytes in (rounded_gaussian.__kwdefaults__ or {}).values()
    assert len({secret_bytes(32) for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("integers", "sigma"), [([0.5], 1), ([2**62], 1), ([0], 0), ([0], -1), ([0], 2**41), (["a"], 1)], ids=str
)
def test_what_cannot_be_noised_is_refused(integers: Any, sigma: Any) -> None:
    with pytest.raises(cm.InputError):
        rounded_gaussian(integers, sigma)


def test_a_source_that_gives_too_little_is_refused() -> None:
    with pytest.raises(cm.InputError, match="random bytes"):
        rounded_gaussian([1, 2], 1, source=lambda size: b"")
    with pytest.raises(cm.CertificateError, match="source of randomness"):
        exact_noise(0, Fraction(1), lambda size: bytes(size))
