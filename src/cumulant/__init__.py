"""cumulant: how much privacy has been spent?

The analytical moments accountant of Wang, Balle and Kasiviswanathan: describe what ran, get an epsilon that can be defended.

>>> import cumulant as cm
>>> step = cm.Gaussian(noise_multiplier="1.1", clip=1, relation="add-remove") @ cm.Poisson(rate="1%")  # DP-SGD
>>> (step * 1000).epsilon(delta=1e-6)
1.753

The run of the paper, 600,000 rounds of a query of sensitivity 1:

>>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000
>>> run.epsilon(delta=1e-8, method="paper")
2.02701
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cumulant.plot_registry import drawer as _drawer

if TYPE_CHECKING:
    from cumulant.accountant import Accountant
    from cumulant.accounting.attacks import TradeOffCurve
    from cumulant.accounting.check import Check
    from cumulant.accounting.gaussian_fit import GaussianFit
    from cumulant.accounting.guarantee import Guarantee
    from cumulant.accounting.plan import Evidence, Term
    from cumulant.accounting.privacy_loss import PrivacyLoss
    from cumulant.accounting.risk import Risk
    from cumulant.archives import archive
    from cumulant.bounds.bound import Bound
    from cumulant.bounds.table import BOUNDS
    from cumulant.calibrate import Calibration, calibrate
    from cumulant.conversion.verify import Verification
    from cumulant.errors import (
        BudgetRefused,
        CertificateError,
        CumulantError,
        HypothesisError,
        InputError,
        KeyConflict,
        LedgerBroken,
        LedgerError,
        NotationError,
        RelationError,
    )
    from cumulant.ledger.ledger import Ledger
    from cumulant.mechanisms.approximate_dp import ApproximateDP
    from cumulant.mechanisms.bounded_laplace import BoundedLaplace
    from cumulant.mechanisms.discrete_gaussian import DiscreteGaussian
    from cumulant.mechanisms.discrete_laplace import DiscreteLaplace
    from cumulant.mechanisms.exponential import ExponentialMechanism
    from cumulant.mechanisms.exponential_family import ExponentialFamilyMechanism
    from cumulant.mechanisms.from_densities import from_densities
    from cumulant.mechanisms.from_masses import from_masses
    from cumulant.mechanisms.from_rdp import from_rdp
    from cumulant.mechanisms.from_rdp_points import from_rdp_points
    from cumulant.mechanisms.gaussian import Gaussian
    from cumulant.mechanisms.gaussian_dp import GaussianDP
    from cumulant.mechanisms.gaussian_mixture import GaussianMixture
    from cumulant.mechanisms.group import Group
    from cumulant.mechanisms.kary_response import KaryResponse
    from cumulant.mechanisms.laplace import Laplace
    from cumulant.mechanisms.last_iterate import last_iterate
    from cumulant.mechanisms.local_randomizer import LocalRandomizer
    from cumulant.mechanisms.matrix_mechanism import MatrixMechanism
    from cumulant.mechanisms.mechanism import Expression, Mechanism, Run, Sampled
    from cumulant.mechanisms.noisy_max import NoisyMax
    from cumulant.mechanisms.parallel import Parallel, parallel
    from cumulant.mechanisms.partition_selection import PartitionSelection
    from cumulant.mechanisms.permute_and_flip import PermuteAndFlip
    from cumulant.mechanisms.posterior import DirichletPosterior, GaussianMeanPosterior, PosteriorSampling
    from cumulant.mechanisms.privacy_profile import PrivacyProfile
    from cumulant.mechanisms.pure_dp import PureDP
    from cumulant.mechanisms.randomized_response import RandomizedResponse
    from cumulant.mechanisms.repeat_and_select import RepeatAndSelect
    from cumulant.mechanisms.shuffle import Shuffle
    from cumulant.mechanisms.shuffled_batches import ShuffledBatches
    from cumulant.mechanisms.skellam import Skellam
    from cumulant.mechanisms.sparse_vector import SparseVector
    from cumulant.mechanisms.subset_selection import SubsetSelection
    from cumulant.mechanisms.trade_off import TradeOff
    from cumulant.mechanisms.unary_encoding import UnaryEncoding
    from cumulant.mechanisms.user import User
    from cumulant.mechanisms.zero_concentrated import ZeroConcentrated
    from cumulant.notation import parse
    from cumulant.relation import Relation
    from cumulant.sampling.balls_in_bins import BallsInBins
    from cumulant.sampling.cyclic_poisson import CyclicPoisson
    from cumulant.sampling.fixed_order import FixedOrder
    from cumulant.sampling.min_sep import MinSep
    from cumulant.sampling.poisson import Poisson
    from cumulant.sampling.random_allocation import RandomAllocation
    from cumulant.sampling.truncated_poisson import TruncatedPoisson
    from cumulant.sampling.with_replacement import WithReplacement
    from cumulant.sampling.without_replacement import WithoutReplacement
    from cumulant.sweep import Sweep, sweep
    from cumulant.training.sgd import NoisySGD

__all__ = [
    "BOUNDS",
    "Accountant",
    "ApproximateDP",
    "BallsInBins",
    "Bound",
    "BoundedLaplace",
    "BudgetRefused",
    "Calibration",
    "CertificateError",
    "Check",
    "CumulantError",
    "CyclicPoisson",
    "DirichletPosterior",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Evidence",
    "ExponentialFamilyMechanism",
    "ExponentialMechanism",
    "Expression",
    "FixedOrder",
    "Gaussian",
    "GaussianDP",
    "GaussianFit",
    "GaussianMeanPosterior",
    "GaussianMixture",
    "Group",
    "Guarantee",
    "HypothesisError",
    "InputError",
    "KaryResponse",
    "KeyConflict",
    "Laplace",
    "Ledger",
    "LedgerBroken",
    "LedgerError",
    "LocalRandomizer",
    "MatrixMechanism",
    "Mechanism",
    "MinSep",
    "NoisyMax",
    "NoisySGD",
    "NotationError",
    "Parallel",
    "PartitionSelection",
    "PermuteAndFlip",
    "Poisson",
    "PosteriorSampling",
    "PrivacyLoss",
    "PrivacyProfile",
    "PureDP",
    "RandomAllocation",
    "RandomizedResponse",
    "Relation",
    "RelationError",
    "RepeatAndSelect",
    "Risk",
    "Run",
    "Sampled",
    "Shuffle",
    "ShuffledBatches",
    "Skellam",
    "SparseVector",
    "SubsetSelection",
    "Sweep",
    "Term",
    "TradeOff",
    "TradeOffCurve",
    "TruncatedPoisson",
    "UnaryEncoding",
    "User",
    "Verification",
    "WithReplacement",
    "WithoutReplacement",
    "ZeroConcentrated",
    "__version__",
    "archive",
    "calibrate",
    "from_densities",
    "from_masses",
    "from_rdp",
    "from_rdp_points",
    "last_iterate",
    "parallel",
    "parse",
    "sweep",
]


_SUBMODULES = {
    "approximations": "cumulant.paper.approximations",
    "chi": "cumulant.paper.chi",
    "composition": "cumulant.conversion.composition",
    "differences": "cumulant.numerics.differences",
    "families": "cumulant.paper.families",
    "normal": "cumulant.paper.normal",
    "training": "cumulant.training",
}
"""Modules a researcher may want, loaded when first asked for: `cm.families.Bernoulli`, `cm.chi.Ternary`, …"""

_PUBLIC_NAMES = {
    "cumulant.accountant": ("Accountant",),
    "cumulant.accounting.attacks": ("TradeOffCurve",),
    "cumulant.accounting.check": ("Check",),
    "cumulant.accounting.gaussian_fit": ("GaussianFit",),
    "cumulant.accounting.guarantee": ("Guarantee",),
    "cumulant.accounting.plan": ("Evidence", "Term"),
    "cumulant.accounting.privacy_loss": ("PrivacyLoss",),
    "cumulant.accounting.risk": ("Risk",),
    "cumulant.archives": ("archive",),
    "cumulant.bounds.bound": ("Bound",),
    "cumulant.bounds.table": ("BOUNDS",),
    "cumulant.calibrate": ("Calibration", "calibrate"),
    "cumulant.conversion.verify": ("Verification",),
    "cumulant.errors": (
        "BudgetRefused",
        "CertificateError",
        "CumulantError",
        "HypothesisError",
        "InputError",
        "KeyConflict",
        "LedgerBroken",
        "LedgerError",
        "NotationError",
        "RelationError",
    ),
    "cumulant.ledger": ("Ledger",),
    "cumulant.mechanisms.from_densities": ("from_densities",),
    "cumulant.mechanisms.from_masses": ("from_masses",),
    "cumulant.mechanisms.from_rdp": ("from_rdp",),
    "cumulant.mechanisms.from_rdp_points": ("from_rdp_points",),
    "cumulant.mechanisms.last_iterate": ("last_iterate",),
    "cumulant.mechanisms.mechanism": ("Expression", "Mechanism", "Run", "Sampled"),
    "cumulant.mechanisms.parallel": ("Parallel", "parallel"),
    "cumulant.mechanisms.posterior": ("DirichletPosterior", "GaussianMeanPosterior", "PosteriorSampling"),
    "cumulant.notation": ("parse",),
    "cumulant.relation": ("Relation",),
    "cumulant.sweep": ("Sweep", "sweep"),
    "cumulant.training.sgd": ("NoisySGD",),
}
"""Public names by module, loaded when the name is first asked for; mechanisms and schemes are found by their registries."""

_MODULES = {name: module for module, names in _PUBLIC_NAMES.items() for name in names}
"""The module of a public name."""


class _Package(ModuleType):
    """The package as an object, on which `cumulant.calibrate` and `cumulant.sweep` stay functions.

    Python binds a submodule to its package when it is first imported, which would hide the function of the same name.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


@_drawer("run")
def _draw_run(*arguments: Any) -> Any:
    from cumulant.plotting.sheet import picture

    return picture(*arguments)


@_drawer("loss")
def _draw_loss(*arguments: Any) -> Any:
    from cumulant.plotting.loss import picture

    return picture(*arguments)


@_drawer("sweep")
def _draw_sweep(*arguments: Any) -> Any:
    from cumulant.plotting.sweep import picture

    return picture(*arguments)


def __dir__() -> list[str]:
    return list(__all__)


def _registered(name: str) -> Any:
    """Return the mechanism or scheme of this name, for which a file in a folder is enough; None if there is none."""
    from cumulant.mechanisms.mechanism import MECHANISMS
    from cumulant.sampling.scheme import SCHEMES

    return MECHANISMS.get(name) or SCHEMES.get(name)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("cumulant")
    if name in _SUBMODULES:
        return import_module(_SUBMODULES[name])
    if name in _MODULES:
        return globals().setdefault(name, getattr(import_module(_MODULES[name]), name))
    # `from cumulant import domains` asks for a module and loads nothing else
    if name[:1].isupper() and (found := _registered(name)) is not None:
        return globals().setdefault(name, found)
    from cumulant.hints import nearest

    hint = "" if name.startswith("_") else nearest(name, __all__)  # tools ask for many private names
    raise AttributeError(f"module 'cumulant' has no attribute {name!r}{hint}")
