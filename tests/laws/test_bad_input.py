"""Bad input to mechanisms and combinators: every domain and joint constraint, one clear sentence each."""

from typing import Any

import pytest

import cumulant as cm

SENTENCES: list[tuple[str, dict[str, Any], str]] = [
    ("KaryResponse", {"values": 1, "p": "1/2"}, "values=1 must be an integer in [2, 1000000000000000000000000"),
    ("KaryResponse", {"values": "2.5", "p": "1/2"}, "values=2.5 must be an integer in [2, 10000000000000000000000"),
    ("KaryResponse", {"values": 3, "p": 1}, "p=1 must be a number in (0, 1)"),
    ("KaryResponse", {"values": 3, "p": 0}, "p=0 must be a number in (0, 1)"),
    ("KaryResponse", {"values": 3, "epsilon": -1}, "epsilon=-1 must be a number in [0, inf)"),
    ("KaryResponse", {"values": 3}, "KaryResponse takes values=… and p=…, or values=… and epsilon"),
    (
        "KaryResponse",
        {"values": 3, "p": "1/2", "epsilon": 1},
        "KaryResponse takes values=… and p=…, or values=… and epsilon",
    ),
    ("UnaryEncoding", {"p": "1/4", "q": "1/2"}, "q=1/2 must be below p=1/4"),
    ("UnaryEncoding", {"p": "1/2", "q": "1/2"}, "q=1/2 must be below p=1/2"),
    ("UnaryEncoding", {"p": 1, "q": "1/2"}, "p=1 must be a number in (0, 1)"),
    ("UnaryEncoding", {"p": "1/2", "q": 0}, "q=0 must be a number in (0, 1)"),
    ("SubsetSelection", {"values": 4, "size": 4, "epsilon": 1}, "size=4 must be below values=4"),
    (
        "SubsetSelection",
        {"values": 4, "size": 0, "epsilon": 1},
        "size=0 must be an integer in [1, 100000000000000000000000000",
    ),
    (
        "SubsetSelection",
        {"values": 4, "size": "1.5", "epsilon": 1},
        "size=1.5 must be an integer in [1, 1000000000000000000000000",
    ),
    ("SubsetSelection", {"values": 4, "size": 2, "epsilon": -1}, "epsilon=-1 must be a number in [0, inf)"),
    ("DiscreteLaplace", {"scale": 0}, "scale=0 must be a number in (0, inf)"),
    ("DiscreteLaplace", {"scale": -1}, "scale=-1 must be a number in (0, inf)"),
    ("DiscreteLaplace", {"scale": 1, "sensitivity": -1}, "sensitivity=-1 must be a number in (0, inf)"),
    ("DiscreteGaussian", {"sigma": 0}, "sigma=0 must be a number in (0, inf)"),
    ("DiscreteGaussian", {"sigma": 1, "dimension": 0}, "dimension=0 must be an integer in [1, 1000000000000000000000"),
    (
        "DiscreteGaussian",
        {"sigma": 1, "dimension": "1.5"},
        "dimension=1.5 must be an integer in [1, 10000000000000000000",
    ),
    ("ExponentialMechanism", {"epsilon": -1}, "epsilon=-1 must be a number in [0, inf)"),
    ("PermuteAndFlip", {"epsilon": -1}, "epsilon=-1 must be a number in [0, inf)"),
    ("NoisyMax", {"scale": 0}, "scale=0 must be a number in (0, inf)"),
    ("NoisyMax", {"scale": 1, "noise": "gaussian"}, "noise='gaussian' is unknown; choose one of exponential, lapl"),
    ("NoisyMax", {"scale": 1, "sensitivity": 0}, "sensitivity=0 must be a number in (0, inf)"),
    ("NoisyMax", {"scale": 1, "monotone": "maybe"}, 'monotone=\'maybe\' must be True or False, in text "yes" or "no'),
    ("SparseVector", {"threshold": 0, "query": 1}, "threshold=0 must be a number in (0, inf)"),
    ("SparseVector", {"threshold": 1, "query": -1}, "query=-1 must be a number in (0, inf)"),
    ("SparseVector", {"threshold": 1, "query": 1, "hits": 0}, "hits=0 must be an integer in [1, 10000]"),
    ("SparseVector", {"threshold": 1, "query": 1, "hits": "1.5"}, "hits=1.5 must be an integer in [1, 10000]"),
    (
        "SparseVector",
        {"threshold": 1, "query": 1, "noise": "gaussian"},
        "Gaussian noise needs queries=…, how many there are at most, ",
    ),
    (
        "SparseVector",
        {"threshold": 1, "query": 1, "noise": "uniform"},
        "noise='uniform' is unknown; choose one of laplace, gaussian",
    ),
    (
        "SparseVector",
        {"threshold": 1, "query": 1, "noise": "gaussian", "queries": 1000000},
        "Gaussian noise needs queries=…, how many there are at most, ",
    ),
    (
        "SparseVector",
        {"threshold": 1, "query": 1, "noise": "gaussian", "queries": 10000, "hits": 1000},
        "hits=1000 times queries=10000 must be at most 1000000 with G",
    ),
    ("SparseVector", {"threshold": 1, "query": 1, "sensitivity": 0}, "sensitivity=0 must be a number in (0, inf)"),
    (
        "SparseVector",
        {"threshold": 1, "query": 1, "monotone": 1},
        'monotone=1 must be True or False, in text "yes" or "no"',
    ),
    ("GaussianDP", {"mu": 0}, "mu=0 must be a number in (0, inf)"),
    ("GaussianDP", {"mu": -1}, "mu=-1 must be a number in (0, inf)"),
    ("PrivacyProfile", {"epsilons": [1], "deltas": [1, 2]}, "deltas[0]=1 must be a number in [0, 1)"),
    (
        "PrivacyProfile",
        {"epsilons": [-1], "deltas": ["0.1"]},
        "epsilons[0]=-1 must be a number in [0, 300]; beyond it nothi",
    ),
    ("PrivacyProfile", {"epsilons": [], "deltas": []}, "epsilons=[] must be a list, each a number in [0, 300]"),
    ("PrivacyProfile", {"epsilons": [1], "deltas": [2]}, "deltas[0]=2 must be a number in [0, 1)"),
    (
        "TradeOff",
        {"alphas": [0, "0.5", 1], "betas": [1, "0.9", 0]},
        "the polygon is not convex at vertex 1, (0.5, 0.9); give its ",
    ),
    ("TradeOff", {"alphas": [0, 1], "betas": [1]}, "alphas and betas must have the same length, not 2 and 1"),
    (
        "TradeOff",
        {"alphas": ["0.5", 0], "betas": [0, 1]},
        "alphas must increase and betas not rise, unlike vertex 1, (0",
    ),
    ("TradeOff", {"alphas": [0, 2], "betas": [1, 0]}, "alphas[1]=2 must be a number in [0, 1]"),
    ("ZeroConcentrated", {"rho": -1}, "rho=-1 must be a number in [0, inf)"),
    ("ZeroConcentrated", {"rho": 1, "omega": 1}, "omega=1 must be a number in (1, inf)"),
    ("ZeroConcentrated", {"rho": 1, "xi": -1}, "xi=-1 must be a number in [0, inf)"),
    ("RepeatAndSelect", {"mean": "0.5"}, "mean=0.5 must be at least 1, because at least one run is mad"),
    ("RepeatAndSelect", {"mean": 2, "shape": -1}, "shape=-1 must be a number in [0, inf)"),
    (
        "RepeatAndSelect",
        {"mean": 2, "shape": 2, "number": "poisson"},
        "shape=2 is that of negative binomial numbers; a Poisson numb",
    ),
    ("RepeatAndSelect", {"mean": 2, "number": "fixed"}, "number='fixed' is unknown; choose one of negative-binomial, "),
    ("Group", {"size": 0}, "size=0 must be an integer in [1, 1000000]"),
    ("Group", {"size": "1.5"}, "size=1.5 must be an integer in [1, 1000000]"),
    ("parallel", {}, "parallel takes two runs or more, such as parallel(Laplace(2)"),
    ("Gaussian", {"sigma": 1, "squared_sensitivity": -1}, "squared_sensitivity=-1 must be a number in (0, inf)"),
    ("Gaussian", {"sigma": -1}, "sigma=-1 must be a number in [0, inf)"),
    (
        "Gaussian",
        {"sigma": 1, "sensitivity": 2, "squared_sensitivity": 4},
        "squared_sensitivity says what sensitivity is; leave one of t",
    ),
    ("Poisson", {"rate": 2}, "rate=2 must be a number in [0, 1]; for sample and population"),
    (
        "Poisson",
        {"rate": "0.1", "relation": "sideways"},
        "relation='sideways' is unknown; choose 'replace-one', 'add",
    ),
]
"""A name, what it is given, and how the sentence begins."""

TOGETHER = {
    'NoisyMax(scale=1, monotone="yes") @ WithoutReplacement(rate=0.1)': "is stated for add-remove",
    'SparseVector(threshold=1, query=1, monotone="yes") @ WithoutReplacement(rate=0.1)': "is stated for add-remove",
    'NoisyMax(scale=1, monotone="yes") @ WithoutReplacement(rate=0.1, relation="add-remove")': "is stated for add-remove",
    "KaryResponse(values=3, p=0.5) @ Poisson(rate=0.1)": "is stated for replace-one",
    "UnaryEncoding(p=0.5, q=0.25) @ Poisson(rate=0.1)": "is stated for replace-one",
    "SubsetSelection(values=5, size=2, epsilon=1) @ Poisson(rate=0.1)": "is stated for replace-one",
    "(PureDP(1) | PureDP(2)) @ Poisson(rate=0.1)": "put the sample into each part",
    "PureDP(1) @ RepeatAndSelect(mean=2) @ Poisson(rate=0.1)": "write the sample inside",
    "PureDP(1) @ Group(size=2) @ Poisson(rate=0.1)": "write the sample first and Group last",
    "PrivacyProfile([1], [0.01]) @ Group(size=2)": "state one (epsilon, delta) of it",
    'Laplace(1) @ Poisson(rate=0.1, relation="replace-one")': "needs the distance of a record from an absent one",
}


@pytest.mark.parametrize(("name", "given", "sentence"), SENTENCES)
def test_domains(name: str, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(cm.InputError) as caught:
        getattr(cm, name)(**given)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", sorted(TOGETHER))
def test_what_does_not_go_together(text: str) -> None:
    with pytest.raises(cm.CumulantError) as caught:
        cm.parse(text)
    assert TOGETHER[text] in str(caught.value)
    assert "\n" not in str(caught.value)
