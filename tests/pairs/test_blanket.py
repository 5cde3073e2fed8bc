"""The blanket of finite randomizers: random laws with zeros, all data sets enumerated, and chords above the profile."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.exact.shuffled_reports import Randomizer
from cumulant.pairs.blanket import BlanketPair, labels_of, shuffled_delta
from tests.mechanisms.reports import needed_delta


@pytest.mark.parametrize("seed", range(3))
def test_random_randomizers_enumerated(seed: int) -> None:
    """Laws with zeros, so that a part of the outputs is off every blanket; some come near the bound."""
    rng = np.random.default_rng(seed)
    share = 0.0
    for _ in range(4):
        weights = rng.integers(0, 4, (3, 3)) + (rng.random((3, 3)) < 0.6)
        weights[weights.sum(axis=1) == 0] = 1
        exact = [[Fraction(int(w), int(row.sum())) for w in row] for row in weights]
        laws = [[float(w) for w in row] for row in exact]
        randomizer = Randomizer.of_laws(exact)
        if not randomizer.labels:
            continue
        for reports, epsilon in ((2, 0.1), (3, 0.5)):
            grown = Fraction(math.exp(epsilon))
            claimed = max(shuffled_delta(labels, reports, grown) for labels in randomizer.labels)
            needed = needed_delta(laws, reports, epsilon)
            assert needed <= claimed * (1 + 1e-9)
            share = max(share, needed / claimed if claimed else 0.0)
            for witness in randomizer.witnesses(reports):
                assert witness.step.own_delta(epsilon, -40.0) <= needed * (1 + 1e-9)  # type: ignore[operator]
    assert share > 0.9


def test_chords_are_above_the_profile() -> None:
    labels = cm.UnaryEncoding(p="1/2", q="1/5").local_randomizer().labels
    chords = BlanketPair.of_labels(labels, 200)
    for epsilon in (0.0, 0.03, 0.17, 0.4):
        claimed = shuffled_delta(labels[0], 200, Fraction(math.exp(epsilon)))
        assert claimed * (1 - 1e-9) <= float(chords.profile([epsilon])[0]) <= claimed * 1.05


def test_outputs_off_the_blanket_count() -> None:
    """One output belongs to the first input alone: its mass stays, however many reports there are."""
    half, none = Fraction(1, 2), Fraction(0)
    laws = [[half, half, none], [none, half, half]]
    labels = labels_of([none, half, none], laws[0], laws[1])
    assert shuffled_delta(labels, 1000, Fraction(1)) >= 0.5
    run = cm.LocalRandomizer(inputs=2, masses=[*laws[0], *laws[1]]) @ cm.Shuffle(reports=100)
    assert run.delta(epsilon=3) >= 0.5
    assert run.epsilon(delta="0.1") == math.inf


@pytest.mark.parametrize("turned", [False, True])
def test_the_worst_pair_of_inputs_counts(turned: bool) -> None:
    """The first two inputs are nearly alike and the third is far, or the other way round: the largest pair is the answer."""
    rows = [[Fraction(5, 10), Fraction(5, 10)], [Fraction(6, 10), Fraction(4, 10)], [Fraction(9, 10), Fraction(1, 10)]]
    labels = Randomizer.of_laws(rows[::-1] if turned else rows).labels
    deltas = [shuffled_delta(each, 20, Fraction(math.exp(0.3))) for each in labels]
    assert max(deltas) > 2 * min(deltas)
    assert float(BlanketPair.of_labels(labels, 20).profile([0.3])[0]) >= max(deltas) * (1 - 1e-9)
