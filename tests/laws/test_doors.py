"""Everything that is registered, at every door: text, JSON, the shell, calibrations; by divergences, which are fast."""

import json
from fractions import Fraction

import pytest

import cumulant as cm
from cumulant.cli import app
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.sampling.scheme import SCHEMES

TEXTS = {
    "ApproximateDP": ("ApproximateDP(epsilon={}, delta=1e-7)", "0.1"),
    "BoundedLaplace": ("BoundedLaplace(scale={}, bound=300)", "9"),
    "DirichletPosterior": ("DirichletPosterior(prior=[30, 40], records=50, tempering={})", "0.1"),
    "DiscreteGaussian": ("DiscreteGaussian(sigma={}, dimension=1)", "9"),
    "DiscreteLaplace": ("DiscreteLaplace(scale={})", "9"),
    "ExponentialFamilyMechanism": (
        "ExponentialFamilyMechanism(diameter=1, hessian=1, lipschitz={}, radius=1, records=50)",
        "0.1",
    ),
    "ExponentialMechanism": ("ExponentialMechanism(epsilon={})", "0.1"),
    "Gaussian": ("Gaussian(sigma={}, squared_sensitivity=2)", "9"),
    "GaussianDP": ("GaussianDP(mu={})", "0.1"),
    "GaussianMeanPosterior": (
        "GaussianMeanPosterior(diameter=1, variance={}, records=50, prior_precision=1, tempering=1)",
        "9",
    ),
    "GaussianMixture": ("GaussianMixture(sigma={}, shifts=[0, 1, 2], weights=[0.5, 0.3, 0.2])", "9"),
    "KaryResponse": ("KaryResponse(values=4, epsilon={})", "0.1"),
    "Laplace": ("Laplace(scale={})", "9"),
    "MatrixMechanism": ("MatrixMechanism(bands=[1, 0.5], steps=40, sigma={})", "9"),
    "BallsInBins": ("MatrixMechanism(bands=[1, 0.5], steps=40, sigma=9) @ BallsInBins(bins={})", "4"),
    "CyclicPoisson": ("MatrixMechanism(bands=[1, 0.5], steps=40, sigma=9) @ CyclicPoisson(cycle=2, rate={})", "0.1"),
    "FixedOrder": ("MatrixMechanism(bands=[1, 0.5], steps=40, sigma={}) @ FixedOrder(every=4)", "30"),
    "MinSep": ("MatrixMechanism(bands=[1, 0.5], steps=40, sigma={}) @ MinSep(separation=4, most=3)", "30"),
    "NoisyMax": ('NoisyMax(scale={}, noise="laplace")', "20"),
    "PartitionSelection": ("PartitionSelection(epsilon={}, delta=1e-8)", "0.1"),
    "PermuteAndFlip": ("PermuteAndFlip(epsilon={})", "0.1"),
    "PrivacyProfile": ("PrivacyProfile(epsilons=[0.1, 1], deltas=[1e-3, 1e-8]) * {}", "1"),
    "PureDP": ("PureDP(epsilon={})", "0.1"),
    "RandomizedResponse": ("RandomizedResponse(p={})", "0.52"),
    "Skellam": ("Skellam(variance={}, dimension=1)", "90"),
    "LocalRandomizer": ("LocalRandomizer(inputs=2, masses=[0.55, 0.45, 0.45, 0.55]) * {}", "1"),
    "SparseVector": ("SparseVector(threshold={}, query=50)", "40"),
    "SubsetSelection": ("SubsetSelection(values=9, size=3, epsilon={})", "0.1"),
    "TradeOff": ("TradeOff(alphas=[0, 0.4, 1], betas=[1, 0.4, 0]) * {}", "1"),
    "UnaryEncoding": ("UnaryEncoding(p={}, q=0.5)", "0.52"),
    "ZeroConcentrated": ("ZeroConcentrated(rho={})", "0.01"),
    "from_masses": ('from_masses(p=["1/2", "1/2"], q=["0.49", "0.51"]) * {}', "2"),
    "from_rdp_points": ("from_rdp_points(orders=[2, 32], values=[0.01, 0.2]) * {}", "1"),
    "Group": ("Gaussian(sigma=90) @ Group(size={})", "3"),
    "Poisson": ("Laplace(scale=9) @ Poisson(rate={})", "0.1"),
    "RandomAllocation": ("Gaussian(sigma=3) @ RandomAllocation(steps={})", "20"),
    "RepeatAndSelect": ("Gaussian(sigma=20) @ RepeatAndSelect(mean={})", "5"),
    "ShuffledBatches": ("Gaussian(sigma={}) @ ShuffledBatches() * 3", "9"),
    "Shuffle": ("PureDP(epsilon=1) @ Shuffle(reports={})", "500"),
    "TruncatedPoisson": (
        'Gaussian(sigma={}, relation="add-remove") @ TruncatedPoisson(rate=0.1, limit=20, population=90)',
        "3",
    ),
    "User": ("Gaussian(sigma={}) @ Poisson(rate=0.1) @ User(records=3)", "9"),
    "WithReplacement": ("Gaussian(sigma={}) @ WithReplacement(sample=5, population=90)", "3"),
    "WithoutReplacement": ("Laplace(scale=9) @ WithoutReplacement(rate={})", "0.1"),
    "parallel": ("(Laplace(scale={}) | PureDP(epsilon=0.1))", "9"),
}
"""Each with one number that calibrate may solve for."""


def test_nothing_is_left_out() -> None:
    differ = (set(TEXTS) - {"parallel"}) ^ {*MECHANISMS, *SCHEMES}
    assert not differ, f"{differ} is registered or in TEXTS, not both; add it to TEXTS, see CONTRIBUTING"


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_text_json_and_the_shell(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = TEXTS[name][0].format(TEXTS[name][1])
    run = cm.parse(text)
    assert cm.parse(str(run)) == run
    found = run.guarantee(delta="1e-3", method="rdp")
    assert 0 < found.epsilon < 30
    assert cm.Guarantee.from_json(found.to_json()) == found
    assert app.answer(["epsilon", text, "--delta", "1e-3", "--method", "rdp", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == found.epsilon
    assert run.relation.meaning


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_calibrations(name: str) -> None:
    """At twice the epsilon of a value some other value is enough, and it is found."""
    template, value = TEXTS[name]
    needed = cm.parse(template.format(value)).epsilon("1e-3", method="rdp")
    target = Fraction(str(round(2 * needed, 6)))
    if name in ("RepeatAndSelect", "ExponentialFamilyMechanism"):
        return  # a mean adds a logarithm, and each question takes a search; a Lipschitz constant may be too large to matter
    found = cm.calibrate(template.format("?"), epsilon=target, delta="1e-3", method="rdp", digits=2)
    assert found.guarantee.epsilon <= target
    assert found.fails is None or cm.parse(template.format(found.fails)).epsilon("1e-3", method="rdp") > target
