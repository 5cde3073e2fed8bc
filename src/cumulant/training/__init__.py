"""Training loops that run what is accounted.

Samplers, clipping and noise, audits, and the statement at the end.
"""

from cumulant.training import audit
from cumulant.training.balls_in_bins import BallsInBinsSampler
from cumulant.training.budget import Budget
from cumulant.training.card import Setting, statement
from cumulant.training.conformance import conformance
from cumulant.training.correlated_noise import CorrelatedIntegers, CorrelatedNoise
from cumulant.training.cyclic_poisson import CyclicPoissonSampler
from cumulant.training.fedavg import FedAvg
from cumulant.training.individual import IndividualBudget
from cumulant.training.individual_descent import train_with_individual_budget
from cumulant.training.noise import clipped, rounded_gaussian
from cumulant.training.registry import Deployment
from cumulant.training.repetitions import draw_repetitions
from cumulant.training.sampler import FixedSizeSampler, PoissonSampler
from cumulant.training.sequential import Sequential
from cumulant.training.sgd import NoisySGD
from cumulant.training.shuffled_sampler import ShuffledSampler
from cumulant.training.worst_case import known_order_scores, likelihood_ratio_scores, spread_scores, worst_case_data

__all__ = [
    "BallsInBinsSampler",
    "Budget",
    "CorrelatedIntegers",
    "CorrelatedNoise",
    "CyclicPoissonSampler",
    "Deployment",
    "FedAvg",
    "FixedSizeSampler",
    "IndividualBudget",
    "NoisySGD",
    "PoissonSampler",
    "Sequential",
    "Setting",
    "ShuffledSampler",
    "audit",
    "clipped",
    "conformance",
    "draw_repetitions",
    "known_order_scores",
    "likelihood_ratio_scores",
    "rounded_gaussian",
    "spread_scores",
    "statement",
    "train_with_individual_budget",
    "worst_case_data",
]
