"""cumulant: how much privacy has been spent?

The analytical moments accountant of Wang, Balle and Kasiviswanathan: describe what ran, get an epsilon that can be defended.

>>> import cumulant as cm
>>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000
>>> run.epsilon(delta=1e-8, method="paper")
2.02701
"""

from cumulant.accountant import Accountant
from cumulant.bounds.table import BOUNDS, Bound
from cumulant.errors import (
    CertificateError,
    CumulantError,
    HypothesisError,
    InputError,
    NotationError,
    RelationError,
)
from cumulant.guarantee import Guarantee, Term
from cumulant.mechanisms.base import Expression, Mechanism
from cumulant.mechanisms.custom import from_densities, from_masses, from_rdp_points, mechanism
from cumulant.mechanisms.exponential_family import ExponentialFamilyMechanism
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.laplace import Laplace
from cumulant.mechanisms.posterior import DirichletPosterior, GaussianMeanPosterior, PosteriorSampling
from cumulant.mechanisms.promises import ApproximateDP, PureDP, ZeroConcentrated
from cumulant.mechanisms.relation import Relation
from cumulant.mechanisms.response import RandomizedResponse
from cumulant.mechanisms.run import Run
from cumulant.mechanisms.sampling import Sampled, WithoutReplacement
from cumulant.notation import parse

__all__ = [
    "BOUNDS",
    "Accountant",
    "ApproximateDP",
    "Bound",
    "CertificateError",
    "CumulantError",
    "DirichletPosterior",
    "ExponentialFamilyMechanism",
    "Expression",
    "Gaussian",
    "GaussianMeanPosterior",
    "Guarantee",
    "HypothesisError",
    "InputError",
    "Laplace",
    "Mechanism",
    "NotationError",
    "PosteriorSampling",
    "PureDP",
    "RandomizedResponse",
    "Relation",
    "RelationError",
    "Run",
    "Sampled",
    "Term",
    "WithoutReplacement",
    "ZeroConcentrated",
    "__version__",
    "from_densities",
    "from_masses",
    "from_rdp_points",
    "mechanism",
    "parse",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version

        return version("cumulant")
    raise AttributeError(f"module 'cumulant' has no attribute {name!r}")
