"""Whatever is handed to a public call, what comes out is an answer or a CumulantError of one sentence."""

import inspect
import math
import tempfile
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.curves.user_function import Function
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.sampling.scheme import SCHEMES


class Hostile:
    """An object of which nothing can be learnt."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no equality")

    def __repr__(self) -> str:
        raise RuntimeError("no text")


WRONG: dict[str, Any] = {
    "None": None,
    "empty list": [],
    "empty dict": {},
    "dict": {"a": 1},
    "set": {1},
    "text": "abc",
    "empty text": "",
    "null character": "\0",
    "object": object(),
    "hostile": Hostile(),
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "-1": -1,
    "0": 0,
    "True": True,
    "complex": 1j,
    "bytes": b"1",
    "huge": 10**5000,
    "huge text": "9" * 5000,
    "large": 10**400,
    "large fraction": Fraction(10**400, 3),
    "decimal nan": Decimal("NaN"),
    "signalling nan": Decimal("sNaN"),
    "decimal": Decimal("1e999999"),
    "empty array": np.array([]),
    "matrix": np.ones((2, 2)),
    "array of objects": np.array([None, "a"], dtype=object),
    "0-d array": np.array(0.5),
    "array of text": np.array(["a"]),
    "date": np.datetime64("2020-01-01"),
    "ragged": [[1], [2, 3]],
    "nested": [[[1]]],
    "class": int,
    "generator": (x for x in "ab"),
    "function": lambda *arguments: None,
    "range": range(3),
    "not a number list": [math.nan, None],
    "surrogate": "\ud800",
}

ALONE = cm.Gaussian(sigma=2)
RUN = cm.Gaussian(sigma=2) @ cm.WithoutReplacement(rate="0.1") * 3
SAMPLED = cm.RandomizedResponse(p="0.75") @ cm.WithoutReplacement(rate="0.01") * 10
GUARANTEE = RUN.guarantee(delta="1e-5", method="rdp")


def said(value: Any, order: float) -> Any:
    return value


def densities(log_p: Any = lambda x: -abs(x) - math.log(2), **more: Any) -> cm.Mechanism:
    return cm.from_densities(log_p, more.pop("log_q", lambda x: -abs(x - 1) - math.log(2)), **more)


RIGHT: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Gaussian": (cm.Gaussian, {"sigma": 1, "sensitivity": 1, "geometry": "ball", "relation": "replace-one"}),
    "from_clipping": (cm.Gaussian.from_clipping, {"norm": 1, "noise": 1, "relation": "replace-one"}),
    "Laplace": (cm.Laplace, {"scale": 1, "sensitivity": 1}),
    "RandomizedResponse": (cm.RandomizedResponse, {"p": "0.6"}),
    "PureDP": (cm.PureDP, {"epsilon": 1}),
    "ApproximateDP": (cm.ApproximateDP, {"epsilon": 1, "delta": "1e-3"}),
    "ZeroConcentrated": (cm.ZeroConcentrated, {"rho": 1, "xi": 1, "omega": 5}),
    "ExponentialFamilyMechanism": (
        cm.ExponentialFamilyMechanism,
        {"diameter": 1, "hessian": 1, "lipschitz": 1, "radius": 1, "records": 5},
    ),
    "DirichletPosterior": (cm.DirichletPosterior, {"prior": [1, 2], "records": 5, "tempering": 1}),
    "GaussianMeanPosterior": (
        cm.GaussianMeanPosterior,
        {"diameter": 1, "variance": 1, "records": 5, "prior_precision": 1, "tempering": 1},
    ),
    "beta_bernoulli": (cm.PosteriorSampling.beta_bernoulli, {"prior": (1, 1), "records": 5, "tempering": 1}),
    "dirichlet": (cm.PosteriorSampling.dirichlet, {"prior": [1, 1, 1], "records": 5, "tempering": 1}),
    "gaussian_mean": (
        cm.PosteriorSampling.gaussian_mean,
        {"diameter": 1, "variance": 1, "records": 5, "prior_precision": 1, "tempering": 1},
    ),
    "from_rdp_points": (cm.from_rdp_points, {"orders": [2, 3], "values": [1, 2]}),
    "from_masses": (cm.from_masses, {"p": ["0.5", "0.5"], "q": ["0.25", "0.75"]}),
    "from_densities": (densities, {"log_p": lambda x: -abs(x) - math.log(2)}),
    "from_densities, the rest": (
        lambda **given: densities(**given),
        {"log_q": lambda x: -abs(x - 1) - math.log(2), "support": (-math.inf, math.inf), "pure": 1},
    ),
    "from_rdp": (
        lambda **given: cm.from_rdp(**given).rdp(2),
        {"rdp": lambda order: order / 18, "pure": 50, "kl": 1, "name": "mine", "upper_bound": True},
    ),
    "KaryResponse": (cm.KaryResponse, {"values": 4, "p": "1/2"}),
    "KaryResponse by epsilon": (cm.KaryResponse, {"values": 4, "epsilon": 1}),
    "UnaryEncoding": (cm.UnaryEncoding, {"p": "1/2", "q": "1/5"}),
    "SubsetSelection": (cm.SubsetSelection, {"values": 10, "size": 3, "epsilon": 1}),
    "LocalRandomizer": (cm.LocalRandomizer, {"inputs": 2, "masses": ["3/4", "1/4", "1/4", "3/4"]}),
    "DiscreteLaplace": (cm.DiscreteLaplace, {"scale": 2, "sensitivity": 3}),
    "DiscreteGaussian": (cm.DiscreteGaussian, {"sigma": 2, "sensitivity": 3, "dimension": 1}),
    "BoundedLaplace": (cm.BoundedLaplace, {"scale": 2, "bound": 30, "sensitivity": 1}),
    "Skellam": (cm.Skellam, {"variance": 9, "sensitivity": 1, "dimension": 2}),
    "GaussianMixture": (cm.GaussianMixture, {"sigma": 2, "shifts": [0, 1], "weights": ["0.9", "0.1"]}),
    "ExponentialMechanism": (cm.ExponentialMechanism, {"epsilon": 1}),
    "PermuteAndFlip": (cm.PermuteAndFlip, {"epsilon": 1}),
    "NoisyMax": (cm.NoisyMax, {"scale": 1, "noise": "laplace", "sensitivity": 1, "monotone": True}),
    "GaussianDP": (cm.GaussianDP, {"mu": 1, "relation": "any", "assumed": "a text"}),
    "PartitionSelection": (cm.PartitionSelection, {"epsilon": 1, "delta": "1e-3"}),
    "last_iterate": (
        cm.last_iterate,
        {
            "steps": 5,
            "step_size": 1,
            "noise": 1,
            "lipschitz": 1,
            "smoothness": 1,
            "strong_convexity": "0.1",
            "records": 4,
            "relation": "add-remove",
            "diameter": 1,
            "batches": 1,
        },
    ),
    "PrivacyProfile": (cm.PrivacyProfile, {"epsilons": [0, 1], "deltas": ["0.1", "0.01"]}),
    "TradeOff": (cm.TradeOff, {"alphas": [0, "1/4", 1], "betas": [1, "1/4", 0]}),
    "SparseVector": (
        cm.SparseVector,
        {"threshold": 2, "query": 4, "hits": 1, "queries": 5, "noise": "laplace", "sensitivity": 1, "monotone": False},
    ),
    "WithoutReplacement": (cm.WithoutReplacement, {"rate": "0.1"}),
    "sizes": (cm.WithoutReplacement, {"sample": 1, "population": 10}),
    "Poisson": (cm.Poisson, {"rate": "0.1"}),
    "TruncatedPoisson": (cm.TruncatedPoisson, {"rate": "0.1", "limit": 5, "population": 10}),
    "WithReplacement": (cm.WithReplacement, {"sample": 5, "population": 10}),
    "NoisySGD": (
        lambda **given: cm.NoisySGD(**given).epsilon("1e-5", method="rdp"),
        {"batch": 64, "records": 1797, "steps": 10, "noise_multiplier": 2},
    ),
    "Group": (cm.Group, {"size": 2}),
    "User": (cm.User, {"records": 2}),
    "MatrixMechanism": (cm.MatrixMechanism, {"bands": [1, "1/2"], "steps": 9, "sigma": 2, "relation": "add-remove"}),
    "multiplier": (cm.MatrixMechanism, {"blt": [[1], ["1/2"]], "steps": 9, "noise_multiplier": 2}),
    "matrix": (cm.MatrixMechanism, {"matrix": [[1, 0], [1, 1]], "sigma": 2}),
    "BallsInBins": (cm.BallsInBins, {"bins": 3}),
    "CyclicPoisson": (cm.CyclicPoisson, {"cycle": 2, "rate": "0.1"}),
    "FixedOrder": (cm.FixedOrder, {"epochs": 3}),
    "MinSep": (cm.MinSep, {"separation": 2, "most": 3}),
    "ShuffledBatches": (cm.ShuffledBatches, {}),
    "RandomAllocation": (cm.RandomAllocation, {"steps": 3, "picks": 2}),
    "Shuffle": (cm.Shuffle, {"reports": 3}),
    "RepeatAndSelect": (cm.RepeatAndSelect, {"mean": 2, "shape": 1, "number": "negative-binomial"}),
    "parallel": (lambda **given: cm.parallel(given["a"], cm.PureDP(1), by=given["by"]), {"a": ALONE, "by": "value"}),
    "parse": (cm.parse, {"text": "Gaussian(sigma=?)", "unknown": 1}),
    "calibrate": (
        cm.calibrate,
        {
            "run": "Gaussian(sigma=?)",
            "epsilon": 1,
            "delta": "1e-5",
            "domain": (1, 10),
            "digits": 2,
            "method": "rdp",
            "bound": "best",
            "conversion": "cks",
        },
    ),
    "Relation.read": (cm.Relation.read, {"value": "replace-one"}),
    "from_json": (cm.Accountant.from_json, {"text": cm.Accountant().to_json()}),
    "compose": (
        lambda **given: cm.Accountant().compose(**given),
        {"expression": RUN, "times": 2},
    ),
    "times": (lambda times: RUN * times, {"times": 2}),
    "curve": (RUN.curve, {"bound": "best"}),
    "epsilon": (
        RUN.epsilon,
        {"delta": "1e-5", "method": "rdp", "bound": "theorem9", "conversion": "cks", "accuracy": "1e-3"},
    ),
    "epsilon by both": (RUN.epsilon, {"delta": "1e-5", "method": "best", "accuracy": "1e-2"}),
    "delta": (
        RUN.delta,
        {"epsilon": 1, "method": "rdp", "bound": "theorem9", "conversion": "cks", "accuracy": "1e-3"},
    ),
    "delta by both": (SAMPLED.delta, {"epsilon": 1, "method": "best", "accuracy": "1e-2"}),
    "guarantee": (
        RUN.guarantee,
        {"delta": "1e-5", "method": "rdp", "bound": "theorem9", "conversion": "cks", "accuracy": "1e-3"},
    ),
    "guarantee at an epsilon": (RUN.guarantee, {"epsilon": 1, "method": "rdp"}),
    "epsilon_over": (
        RUN.epsilon_over,
        {"times": [1, 2], "delta": "1e-5", "method": "rdp", "bound": "caps", "conversion": "cks", "accuracy": "1e-3"},
    ),
    "plot": (cm.PureDP(1).plot, {"delta": "1e-5", "kind": "rdp", "bounds": "best"}),
    "archive": (
        lambda **given: cm.archive(out=tempfile.mkdtemp(), plot=False, **given),
        {"run": "PureDP(1)", "delta": 0, "method": "rdp", "accuracy": "1e-3"},
    ),
    "sweep": (
        cm.sweep,
        {"expression": "Laplace(scale={scale})", "delta": 0, "method": "rdp", "accuracy": "1e-3", "scale": [1, 2]},
    ),
    "cgf_derivative": (cm.Gaussian(sigma=1).cgf_derivative, {"lam": 1}),
    "loss_cumulants": (cm.Gaussian(sigma=1).loss_cumulants, {"count": 2}),
    "check": (RUN.check, {"epsilon": 1, "delta": "1e-5", "accuracy": "1e-3"}),
    "bayes_risk": (ALONE.bayes_risk, {"prior": "0.1"}),
    "gaussian_fit": (ALONE.gaussian_fit, {"slack": "1e-3"}),
    "gaussian_mu": (ALONE.gaussian_mu, {"slack": "1e-3"}),
    "membership": (RUN.membership, {"fpr": 0.1, "method": "rdp"}),
    "attribute": (ALONE.attribute, {"prior": "0.1"}),
    "reidentification": (ALONE.reidentification, {"candidates": 5}),
    "reconstruction": (ALONE.reconstruction, {"prior": "0.1"}),
    "singling_out": (ALONE.singling_out, {"weight": "0.1", "records": 3}),
    "privacy_loss": (ALONE.privacy_loss, {"direction": "both"}),
    "hockey_stick": (ALONE.privacy_loss().hockey_stick, {"epsilon": [0, 1]}),
    "tail": (ALONE.privacy_loss().tail, {"x": [0, 1]}),
    "quantile": (ALONE.privacy_loss().quantile, {"share": "0.9"}),
    "from_matrix": (
        cm.Gaussian.from_matrix,
        {"matrix": [[1, 0], [1, 1]], "sigma": 1, "participation": ("every", 1), "relation": "add-remove"},
    ),
    "Gaussian by its square": (cm.Gaussian, {"sigma": 1, "squared_sensitivity": 2}),
    "Poisson for a replaced record": (cm.Poisson, {"rate": "0.1", "relation": "replace-one"}),
    "trade_off": (RUN.trade_off, {"fpr": [0.1, 0.2], "method": "rdp"}),
    "true_positive_rate": (RUN.true_positive_rate, {"fpr": 0.1, "method": "rdp"}),
    "rdp": (RUN.rdp, {"order": 2, "bound": "theorem9"}),
    "rdp_table": (RUN.rdp_table, {"orders": [2, 3]}),
    "gap": (RUN.gap, {"order": 2, "bound": "theorem9"}),
    "cgf": (RUN.cgf, {"lam": 2, "bound": "theorem9"}),
}
CASES = [(name, argument) for name, (_, arguments) in RIGHT.items() for argument in arguments]


@pytest.mark.parametrize(("name", "argument"), CASES, ids=lambda value: str(value))
def test_wrong_types(name: str, argument: str) -> None:
    call, right = RIGHT[name]
    escaped = {}
    for wrong, value in WRONG.items():
        try:
            call(**right | {argument: value})
        except cm.CumulantError:
            continue
        except Exception as error:
            escaped[wrong] = f"{type(error).__name__}: {str(error)[:80]}"
    assert not escaped


@pytest.mark.parametrize("name", RIGHT)
def test_the_right_ones_are_right(name: str) -> None:
    call, right = RIGHT[name]
    call(**right)


def test_every_public_callable_is_tried() -> None:
    tried = {*RIGHT, "Function", "Ledger"}  # of a ledger: tests/ledger/test_wrong_types.py
    made = {
        "Bound",
        "Calibration",
        "PrivacyLoss",
        "Check",
        "GaussianFit",
        "Risk",
        "Evidence",
        "Guarantee",
        "Term",
        "TradeOffCurve",
        "Verification",
        "Run",
        "Sampled",
        "Parallel",
        "Sweep",
    }
    abstract = {"Accountant", "Expression", "Mechanism", "PosteriorSampling", "Relation"}
    for name in cm.__all__:
        value = getattr(cm, name)
        if callable(value) and not (isinstance(value, type) and issubclass(value, Exception)):
            assert name in tried | made | abstract, name
    questions = {name for name, value in inspect.getmembers(cm.Expression, callable) if not name.startswith("_")}
    assert questions <= tried | {"notation", "record", "kl", "pure", "advantage"}  # these take nothing
    assert {MECHANISMS[name].__name__ for name in MECHANISMS} <= tried | {"ByPoints", "ByMasses"}
    assert set(SCHEMES) <= tried


def test_questions_about_what_holds_a_function() -> None:
    """A function that is wrong in every way, in every question."""
    for wrong, value in WRONG.items():
        run = cm.from_rdp(partial(said, value), name="wrong")
        for ask in (
            lambda: run.epsilon(1e-5),  # noqa: B023
            lambda: run.delta(1),  # noqa: B023
            lambda: run.guarantee(delta=1e-5),  # noqa: B023
            lambda: run.true_positive_rate(0.1),  # noqa: B023
            lambda: run.rdp([2, 3]),  # noqa: B023
            run.kl,
            lambda: (run @ cm.Poisson(0.1)).rdp(2),  # noqa: B023
        ):
            try:
                ask()
            except cm.CumulantError:
                continue
            except Exception as error:
                pytest.fail(f"{wrong}: {type(error).__name__}: {error}")
    assert Function(lambda order: order).rdp([2.0])[0] == 2
