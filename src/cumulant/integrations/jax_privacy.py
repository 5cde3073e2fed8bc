"""JAX Privacy 2.0: batch selection strategies and BandMF plans as expressions.

Objects are read by the name of their class and by their fields, so that jax itself is never imported. An accountant that its
plans take is `cumulant.integrations.dp_accounting.CumulantAccountant`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cumulant.domains import Exact, Number, listed
from cumulant.errors import HypothesisError, InputError, shown
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.matrix_mechanism import MatrixMechanism
from cumulant.mechanisms.mechanism import Expression
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

Bands = Sequence[Number]


def from_plan(
    plan: Any,
    *,
    noise_multiplier: Number | None = None,
    bands: Bands | None = None,
    num_examples: int | None = None,
) -> Expression:
    """Return what a batch selection strategy or a BandMF plan runs, as an expression.

    `noise_multiplier` is over the largest column norm, as JAX Privacy states it, and is taken from a plan that has one. `bands`
    are the first column of the strategy matrix; without them noise is independent. Strategies that depend on the size of the
    data need `num_examples`, of which a strategy that selects users needs the number of users. HypothesisError says what is
    not proved and what to write.

    Groups of equal size change if a record leaves. With them statements are for replace-special neighbours: a record is zeroed
    out and keeps its steps. Batches of a fixed size are for replace-one neighbours.

    >>> class BallsInBinsSampling:
    ...     iterations, cycle_length = 1000, 100
    >>> from_plan(BallsInBinsSampling(), noise_multiplier=4, bands=[1, "1/2"])
    MatrixMechanism(bands=[1, "1/2"], steps=1000, noise_multiplier=4) @ BallsInBins(bins=100)
    """
    name = type(plan).__name__
    if name in ("BandMFExecutionPlanConfig", "BandMFConfig"):
        return _band_mf(plan, noise_multiplier)
    read = _READERS.get(name)
    if read is None:
        raise InputError(f"{name} is no strategy that is known here; known are {', '.join(sorted(_READERS))}")
    if noise_multiplier is None:
        raise InputError(f"{name} says how batches are drawn; add noise_multiplier=…, which is over the column norm")
    column = None if bands is None else [Exact(each) for each in listed("bands", bands)]
    if column is not None and len(column) == 1:
        column = None  # one band is independent noise, and the multiplier is over its norm
    return read(_Plan(plan, Exact(noise_multiplier), column, num_examples))


class _Plan:
    """A strategy with its noise, and what several strategies share."""

    def __init__(self, strategy: Any, noise: Exact, bands: Bands | None, examples: int | None) -> None:
        self.strategy, self.noise, self.bands, self.examples = strategy, noise, bands, examples

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self.strategy, name)
        except AttributeError:
            raise InputError(
                f"{type(self.strategy).__name__} has no field {name!r}; is it one of jax_privacy?"
            ) from None

    @property
    def count(self) -> int:
        return 1 if self.bands is None else len(self.bands)

    @property
    def size(self) -> int:
        if self.examples is None:
            raise InputError(f"{type(self.strategy).__name__} depends on the size of the data; add num_examples=…")
        return int(self.examples)

    def noisy_sum(self, relation: Relation = Relation.ADD_REMOVE) -> Gaussian:
        return Gaussian.from_clipping(norm=1, noise=self.noise, relation=relation)

    def correlated(self, relation: Relation = Relation.ADD_REMOVE) -> MatrixMechanism:
        bands = [Exact(1)] if self.bands is None else self.bands
        return MatrixMechanism(bands=bands, steps=int(self.iterations), noise_multiplier=self.noise, relation=relation)

    def group_relation(self) -> Relation:
        """Return the neighbours for whom other records keep their groups: EQUAL_SPLIT forms them anew if one leaves."""
        independent = getattr(self.partition_type, "name", self.partition_type) == "INDEPENDENT"
        return Relation.ADD_REMOVE if independent or int(self.cycle_length) == 1 else Relation.REPLACE_SPECIAL


def _band_mf(plan: Any, noise: Number | None) -> Expression:
    bands = [Exact(float(each)) for each in plan.strategy]
    given = plan.noise_multiplier if noise is None else noise
    if given is None:
        raise InputError("the plan has no noise multiplier yet; add noise_multiplier=…, which is over the column norm")
    strategy = _BandedSampling(plan, len(bands))
    return _cyclic(_Plan(strategy, Exact(given), bands if len(bands) > 1 else None, plan.num_examples))


class _BandedSampling:
    """The strategy of a BandMF plan: as many groups as bands."""

    def __init__(self, plan: Any, bands: int) -> None:
        self.sampling_prob, self.iterations, self.cycle_length = plan.sampling_prob, plan.iterations, bands
        self.truncated_batch_size, self.partition_type = plan.truncated_batch_size, plan.partition_type


def _cyclic(plan: _Plan) -> Expression:
    rate, cycle, steps = Exact(float(plan.sampling_prob)), int(plan.cycle_length), int(plan.iterations)
    if plan.truncated_batch_size is not None:
        return _truncated(plan, rate, cycle, steps)
    if plan.bands is None and cycle == 1:
        return plan.noisy_sum() @ Poisson(rate=rate) * steps
    if plan.count > cycle:
        if cycle == 1:
            return plan.correlated() @ MinSep(separation=1, rate=rate)
        raise HypothesisError(
            f"{plan.count} bands on a cycle of {cycle}: two steps of one record share noise, and no amplification is proved; "
            f"use at most {cycle} bands, or account MatrixMechanism(...) @ FixedOrder(every={cycle})"
        )
    matrix = plan.correlated(plan.group_relation())
    return matrix @ (FixedOrder(every=cycle) if rate == 1 else CyclicPoisson(cycle=cycle, rate=rate))


def _truncated(plan: _Plan, rate: Exact, cycle: int, steps: int) -> Expression:
    """Return rounds on truncated samples of all the data; those of groups have no proof."""
    if plan.count > 1 or cycle > 1:
        raise HypothesisError(
            f"truncated batches on a cycle of {cycle} with {plan.count} bands: a record that leaves changes its group, and one "
            "that is zeroed out still takes the place of others; nothing is proved. Leave truncated_batch_size out"
        )
    limit, size = int(plan.truncated_batch_size), plan.size
    scheme = Poisson(rate=rate) if limit > size else TruncatedPoisson(rate=rate, limit=limit, population=size)
    return plan.noisy_sum() @ scheme * steps


def _fixed(plan: _Plan) -> Expression:
    sample, steps = int(plan.batch_size), int(plan.iterations)
    relation = Relation.REPLACE_ONE
    if plan.bands is not None:
        if plan.replace:
            raise HypothesisError(
                f"batches of {sample} drawn with replacement under {plan.count} bands: a record may be several times in one "
                "step, and nothing is proved; use replace=False"
            )
        return plan.correlated(relation) @ FixedOrder(every=1)  # not amplified: a record may be in every step
    if plan.replace:
        return plan.noisy_sum(relation) @ WithReplacement(sample=sample, population=plan.size) * steps
    return plan.noisy_sum(relation) @ WithoutReplacement(sample=sample, population=plan.size) * steps


def _balls_in_bins(plan: _Plan) -> Expression:
    return plan.correlated() @ BallsInBins(bins=int(plan.cycle_length))


def _allocation(plan: _Plan) -> Expression:
    fields = {name: getattr(plan.strategy, name, None) for name in ("k", "t", "num_participations", "num_steps")}
    picks, steps = fields["k"] or fields["num_participations"], fields["t"] or fields["num_steps"]
    if picks is None or steps is None:
        raise InputError("RandomAllocationSampling has no fields k and t; is it one of jax_privacy?")
    if plan.bands is None:
        return plan.noisy_sum() @ RandomAllocation(steps=int(steps), picks=int(picks))
    matrix = MatrixMechanism(bands=plan.bands, steps=int(steps), noise_multiplier=plan.noise)
    return matrix @ (BallsInBins(bins=int(steps)) if picks == 1 else MinSep(separation=1, most=int(picks)))


def _min_sep(plan: _Plan) -> Expression:
    if plan.truncated_batch_size is not None:
        raise HypothesisError(
            "truncated batches of BMinSepSampling: samples and other records interact; nothing is proved. Leave "
            "truncated_batch_size out"
        )
    rate, gap = Exact(float(plan.sampling_prob)), int(plan.min_sep)
    if gap == 1 and plan.bands is None:
        return plan.noisy_sum() @ Poisson(rate=rate) * int(plan.iterations)
    if rate == 1 and plan.warm_start:
        return plan.correlated() @ BallsInBins(bins=gap)
    return plan.correlated() @ MinSep(separation=gap, rate=rate)


def _users(plan: _Plan) -> Expression:
    """The strategy inside draws users, and the batch of a user is clipped as a whole: one record is one user."""
    return from_plan(plan.base_strategy, noise_multiplier=plan.noise, bands=plan.bands, num_examples=plan.examples)


def _owners(plan: _Plan) -> Expression:
    gap, most = getattr(plan.strategy, "min_sep", None), getattr(plan.strategy, "max_participations", None)
    if gap is None or most is None:
        raise HypothesisError(
            "MultiOwnerMinSepSampling needs min_sep and max_participations, the examples per user after bounding; "
            "write MatrixMechanism(...) @ MinSep(separation=..., most=...)"
        )
    return plan.correlated() @ MinSep(separation=int(gap), most=int(most))


def _shuffled(plan: _Plan) -> Expression:
    raise HypothesisError(
        f"{shown(type(plan.strategy).__name__)} cuts a permutation into batches, and who else is there tells where a record "
        'is: no amplification is proved; write NoisySGD(sampling="shuffled") or @ ShuffledBatches()'
    )


_READERS: Mapping[str, Callable[[_Plan], Expression]] = {
    "CyclicPoissonSampling": _cyclic,
    "BallsInBinsSampling": _balls_in_bins,
    "FixedBatchSampling": _fixed,
    "RandomAllocationSampling": _allocation,
    "BMinSepSampling": _min_sep,
    "UserSelectionStrategy": _users,
    "MultiOwnerMinSepSampling": _owners,
    "ShuffledSampling": _shuffled,
}
"""The rows of JAX Privacy's page on batch selection, by the name of the class."""
