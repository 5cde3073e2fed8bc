"""Events of Google's dp_accounting to expressions and back, and an accountant.

The accountant serves everything that takes one of theirs.

`noise_multiplier` is what its docstring says: standard deviation over the norm C to which values are bounded. Under REPLACE_ONE
a sum of such values moves by up to 2C, so the multiplier counts half. dp_accounting's own RDP accountant takes it as the
deviation over the sensitivity under every relation; what it reports for samples without replacement is then right for a
multiplier of half the size.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import dp_accounting as dpa
from dp_accounting import NeighboringRelation, PrivacyAccountant

from cumulant.accounting.choices import Method
from cumulant.accounting.guarantee import Guarantee
from cumulant.domains import Exact, Number, spelling
from cumulant.errors import CumulantError, InputError
from cumulant.integrations.dp_accounting_draws import mixture, mixture_event, truncated, with_replacement
from cumulant.lock import Lock
from cumulant.mechanisms.approximate_dp import ApproximateDP
from cumulant.mechanisms.discrete_gaussian import DiscreteGaussian
from cumulant.mechanisms.discrete_laplace import DiscreteLaplace
from cumulant.mechanisms.exponential import ExponentialMechanism
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.gaussian_mixture import GaussianMixture
from cumulant.mechanisms.kary_response import KaryResponse
from cumulant.mechanisms.laplace import Laplace
from cumulant.mechanisms.mechanism import Expression, Mechanism, Sampled
from cumulant.mechanisms.permute_and_flip import PermuteAndFlip
from cumulant.mechanisms.pure_dp import PureDP
from cumulant.mechanisms.randomized_response import RandomizedResponse
from cumulant.mechanisms.repeat_and_select import RepeatAndSelect, Selected
from cumulant.mechanisms.zero_concentrated import ZeroConcentrated
from cumulant.numerics.rounding import as_printed, rounded_down, stated
from cumulant.relation import Relation
from cumulant.sampling.poisson import Poisson
from cumulant.sampling.random_allocation import RandomAllocation
from cumulant.sampling.scheme import Scheme
from cumulant.sampling.without_replacement import WithoutReplacement

__all__ = ["CumulantAccountant", "NotPrivate", "Refused", "from_dp_event", "read_dp_event", "to_dp_event"]

if version("dp-accounting").split(".")[:2] != ["0", "6"]:
    raise ImportError(
        f"dp-accounting {version('dp-accounting')} is installed, but this adapter is for 0.6. TensorFlow Privacy pins 0.4.3. "
        "Write repr(event) into a file there, and read it in another environment by "
        "cumulant.integrations.dp_accounting.read_dp_event(text)"
    )

RELATIONS: Mapping[Any, Relation] = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: Relation.ADD_REMOVE,
    NeighboringRelation.REPLACE_ONE: Relation.REPLACE_ONE,
    NeighboringRelation.REPLACE_SPECIAL: Relation.REPLACE_SPECIAL,
}


DISTANCES = (
    "its sensitivity is one of distances, but events speak of bounded values, of which two differ by twice the bound; state it "
    "by from_clipping(norm, noise, relation=…)"
)


class Refused(InputError):
    """Raised for an event without an expression, or an expression without an event.

    >>> from_dp_event(dpa.UnsupportedDpEvent(), NeighboringRelation.REPLACE_ONE)
    Traceback (most recent call last):
    ...
    cumulant.integrations.dp_accounting.Refused: UnsupportedDpEvent has no mechanism in this library: UnsupportedDpEvent()
    """

    def __init__(self, event: object, reason: str) -> None:
        super().__init__(f"{reason}: {event}")
        self.event, self.reason = event, reason


class NotPrivate(Refused):
    """Raised for an event that protects nobody: its epsilon is infinite."""


# ---- events to expressions


def from_dp_event(event: Any, relation: Any) -> Expression | None:
    """Convert an event to an expression; None if it says that nothing ran.

    `relation` is a NeighboringRelation. Refused for events that have no mechanism here, and under relations for which nothing
    is proved; NotPrivate where epsilon is infinite, as without noise.

    >>> event = dpa.SelfComposedDpEvent(dpa.PoissonSampledDpEvent(0.01, dpa.GaussianDpEvent(1.1)), 100)
    >>> from_dp_event(event, NeighboringRelation.ADD_OR_REMOVE_ONE)
    Gaussian(sigma=1.1, relation="add-remove") @ Poisson(rate=0.01) * 100
    >>> event = dpa.SampledWithoutReplacementDpEvent(60_000, 256, dpa.GaussianDpEvent(2.0))
    >>> from_dp_event(event, NeighboringRelation.REPLACE_ONE)
    Gaussian(sigma=2, sensitivity=2, geometry="ball") @ WithoutReplacement(sample=256, population=60000)
    """
    if relation not in RELATIONS:
        raise InputError(f"relation={relation!r} must be a NeighboringRelation of dp_accounting")
    read = _READERS.get(type(event)) or _READERS_BY_NAME.get(type(event).__name__)
    if read is None:
        raise Refused(event, f"{type(event).__name__} has no mechanism in this library")
    try:
        return read(event, relation)
    except Refused:
        raise
    except CumulantError as error:
        raise Refused(event, str(error)) from error


def read_dp_event(text: str) -> Any:
    """Read the text that repr() made of an event, also of an older dp_accounting.

    Nothing else is evaluated.

    >>> read_dp_event("SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=1.1), count=3)")
    SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=1.1), count=3)
    """
    try:
        return _build_event(ast.parse(text, mode="eval").body)
    except (SyntaxError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"this is not the text of an event ({error}); give what repr(event) returned") from error


def _build_event(node: ast.expr) -> Any:
    """Build an event, a list or a number from its syntax."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        kinds = {kind.__name__: kind for kind in _READERS}
        if node.func.id not in kinds:
            raise InputError(f"{node.func.id} has no mechanism in this library")
        if node.args:
            raise ValueError("its arguments have no names")
        return kinds[node.func.id](**{each.arg or "": _build_event(each.value) for each in node.keywords})
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.float64", "np.int64") and len(node.args) == 1:
        return _build_event(node.args[0])
    if isinstance(node, ast.List | ast.Tuple):
        return [_build_event(each) for each in node.elts]
    return ast.literal_eval(node)


def _gaussian(event: Any, relation: Any) -> Gaussian:
    if event.noise_multiplier == 0:
        raise NotPrivate(event, "there is no noise")
    return Gaussian.from_clipping(norm=1, noise=float(event.noise_multiplier), relation=RELATIONS[relation])


def _laplace(event: Any, relation: Any) -> Expression:
    if event.noise_multiplier == 0:
        raise NotPrivate(event, "there is no noise")
    return Laplace.from_clipping(norm=1, noise=float(event.noise_multiplier), relation=RELATIONS[relation])


def _response(event: Any, relation: Any) -> Expression:
    if relation is not NeighboringRelation.REPLACE_ONE:
        raise Refused(event, "randomized response of one record is about replacing it; use REPLACE_ONE")
    noise, values = Exact(float(event.noise_parameter)), int(event.num_buckets)
    if noise == 0:
        raise NotPrivate(event, "every answer is the true one")
    truthful = 1 - Fraction(noise) + Fraction(noise) / values  # a uniform answer may be the true one too
    return (
        RandomizedResponse(p=spelling(truthful)) if values == 2 else KaryResponse(values=values, p=spelling(truthful))
    )


def _discrete_laplace(event: Any, relation: Any, stated: Relation = Relation.ANY) -> Expression:
    noise = Exact(float(event.noise_parameter))
    if noise <= 0:
        raise Refused(event, f"noise_parameter = {event.noise_parameter} must be positive")
    scale = spelling(1 / Fraction(noise))
    return DiscreteLaplace(
        scale=scale, sensitivity=_bounds_per_record(relation) * int(event.sensitivity), relation=stated
    )


def _discrete_gaussian(event: Any, relation: Any, stated: Relation = Relation.ANY) -> Expression:
    if event.sigma == 0:
        raise NotPrivate(event, "there is no noise")
    sensitivity = spelling(_bounds_per_record(relation) * Fraction(Exact(float(event.sensitivity))))
    dimension = None if event.dimension is None else int(event.dimension)
    return DiscreteGaussian(float(event.sigma), sensitivity, dimension, stated)


def _bounds_per_record(relation: Any) -> int:
    """Return how many bounds one record moves a sum of bounded values."""
    return 2 if RELATIONS[relation] is Relation.REPLACE_ONE else 1


def _promise(event: Any, relation: Any) -> Expression | None:
    if event.delta == 1:
        raise NotPrivate(event, "the promise may always fail")
    if event.delta:
        return ApproximateDP(float(event.epsilon), float(event.delta))
    return PureDP(float(event.epsilon)) if event.epsilon else None


def _concentrated(event: Any, relation: Any) -> Expression | None:
    return None if event.rho == 0 == event.xi else ZeroConcentrated(rho=float(event.rho), xi=float(event.xi))


def _poisson(event: Any, relation: Any) -> Expression | None:
    if not event.sampling_probability:
        return None
    rate = float(event.sampling_probability)
    if relation is not NeighboringRelation.REPLACE_ONE:
        inner = from_dp_event(event.event, relation)
        return None if inner is None else _on(inner, Poisson(rate=rate, relation=RELATIONS[relation]))
    if rate == 1:
        return from_dp_event(event.event, relation)
    # what a record moves from where an absent one leaves it, which a bound on values says
    added = NeighboringRelation.ADD_OR_REMOVE_ONE
    discrete = {"DiscreteLaplaceDpEvent": _discrete_laplace, "DiscreteGaussianDpEvent": _discrete_gaussian}
    read = discrete.get(type(event.event).__name__)
    inner = from_dp_event(event.event, added) if read is None else read(event.event, added, Relation.ADD_REMOVE)
    return None if inner is None else inner @ Poisson(rate=rate, relation=Relation.REPLACE_ONE)


def _without_replacement(event: Any, relation: Any) -> Expression | None:
    if relation is not NeighboringRelation.REPLACE_ONE:
        raise Refused(event, "samples without replacement are accounted under REPLACE_ONE, not " + relation.name)
    inner = from_dp_event(event.event, relation) if event.sample_size else None
    scheme = WithoutReplacement(sample=event.sample_size or 1, population=event.source_dataset_size)
    return None if inner is None else _on(inner, scheme)


def _tree(event: Any, relation: Any) -> Expression | None:
    """Convert a tree of n steps: a leaf is in as many nodes as n has bits.

    Each node has noise of its own.
    """
    if relation is NeighboringRelation.ADD_OR_REMOVE_ONE:
        raise Refused(
            event, "a record that is added moves those after it to other leaves; use REPLACE_SPECIAL or REPLACE_ONE"
        )
    counts = [event.step_counts] if isinstance(event.step_counts, int) else list(event.step_counts)
    if not counts or min(counts) < 0:
        raise Refused(event, f"step_counts = {event.step_counts} must be one or more numbers of steps")
    depth = max(counts).bit_length()  # a record is in one of the trees
    if not depth:
        return None
    node = _gaussian(event, relation)
    # the nodes share the noise of the run: with this mark a sample of it is refused, as that of Gaussian.from_tree is
    return Gaussian(node.sigma, node.sensitivity, node.geometry, node.relation, correlated=True) * depth


def _selection(event: Any, relation: Any) -> Expression | None:
    inner = from_dp_event(event.event, relation)
    if inner is None:
        return None
    if event.shape == math.inf:
        if event.mean < 1:
            raise Refused(event, f"mean = {event.mean} must be at least 1, as dp_accounting has it")
        return inner @ RepeatAndSelect(mean=float(event.mean), number="poisson")
    return inner @ RepeatAndSelect(mean=float(event.mean), shape=float(event.shape))


def _on(inner: Expression, scheme: Scheme) -> Expression:
    return inner if scheme.numbers().get("rate") == 1 else inner @ scheme


def _composition(event: Any, relation: Any) -> Expression | None:
    parts = [part for each in event.events if (part := from_dp_event(each, relation)) is not None]
    whole = None
    for part in parts:
        whole = part if whole is None else whole + part
    return whole


def _repetition(event: Any, relation: Any) -> Expression | None:
    inner = from_dp_event(event.event, relation) if event.count else None
    return None if inner is None else inner * event.count


def _allocated(event: Any, relation: Any) -> Expression | None:
    """One epoch in which a record is in some of the steps; fields are read by the names that are usual for them."""
    if RELATIONS[relation] is not Relation.ADD_REMOVE:
        raise Refused(event, "random allocation is for one record more or less; use ADD_OR_REMOVE_ONE")
    steps = next((found for name in _STEPS if (found := getattr(event, name, None)) is not None), None)
    picks = next((found for name in _PICKS if (found := getattr(event, name, None)) is not None), 1)
    if steps is None:
        raise Refused(event, f"the number of steps is none of its fields {', '.join(_STEPS)}")
    inner = from_dp_event(event.event, relation)
    return None if inner is None else _on(inner, RandomAllocation(steps=int(steps), picks=int(picks)))


_STEPS = ("num_steps", "steps", "t")
_PICKS = ("num_selected", "num_participations", "picks", "k")
"""Fields of an event that no release has yet, by which it is read."""


def _not_private(event: Any, relation: Any) -> Expression:
    raise NotPrivate(event, "nothing is protected")


_READERS: Mapping[type, Callable[[Any, Any], Expression | None]] = {
    dpa.NoOpDpEvent: lambda event, relation: None,
    dpa.NonPrivateDpEvent: _not_private,
    dpa.GaussianDpEvent: _gaussian,
    dpa.LaplaceDpEvent: _laplace,
    dpa.RandomizedResponseDpEvent: _response,
    dpa.dp_event.DiscreteLaplaceDpEvent: _discrete_laplace,
    dpa.ZCDpEvent: _concentrated,
    dpa.PoissonSampledDpEvent: _poisson,
    dpa.SampledWithoutReplacementDpEvent: _without_replacement,
    dpa.dp_event.SampledWithReplacementDpEvent: lambda event, on: with_replacement(event, on, from_dp_event),
    dpa.dp_event.MixtureOfGaussiansDpEvent: mixture,
    dpa.dp_event.TruncatedSubsampledGaussianDpEvent: truncated,
    dpa.dp_event.SingleEpochTreeAggregationDpEvent: _tree,
    dpa.dp_event.RepeatAndSelectDpEvent: _selection,
    dpa.ComposedDpEvent: _composition,
    dpa.SelfComposedDpEvent: _repetition,
}


_READERS_BY_NAME: Mapping[str, Callable[[Any, Any], Expression | None]] = {
    "EpsilonDeltaDpEvent": _promise,
    "ExponentialMechanismDpEvent": lambda event, relation: (
        ExponentialMechanism(float(event.epsilon)) if event.epsilon else None
    ),
    "PermuteAndFlipDpEvent": lambda event, relation: PermuteAndFlip(float(event.epsilon)) if event.epsilon else None,
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "RandomAllocationDpEvent": _allocated,
}
"""Events that release 0.6.0 does not have, so that there may be no class to name."""


# ---- expressions to events


def to_dp_event(run: Expression) -> tuple[Any, Any]:
    """Convert an expression to an event and the relation that it is for.

    Numbers that are no floats are rounded to the side of less privacy: noise down, rates up; otherwise
    `from_dp_event(*to_dp_event(run)) == run`.

    >>> import cumulant as cm
    >>> run = cm.NoisySGD(batch=64, records=1797, steps=28, noise_multiplier=4).run
    >>> event, relation = to_dp_event(run)
    >>> event
    SelfComposedDpEvent(event=SampledWithoutReplacementDpEvent(source_dataset_size=1797, sample_size=64, ...
    >>> from_dp_event(event, relation) == run
    True
    """
    relation = Relation.REPLACE_ONE if run.relation is Relation.ANY else run.relation
    named = next(name for name, each in RELATIONS.items() if each is relation)
    return _event(run, relation), named


def _event(run: Expression, relation: Relation) -> Any:
    events = [(_single(mechanism, relation), times) for mechanism, times in run.terms.items()]
    parts = [event if times == 1 else dpa.SelfComposedDpEvent(event, times) for event, times in events]
    return parts[0] if len(parts) == 1 else dpa.ComposedDpEvent(parts)


def _single(mechanism: Mechanism, relation: Relation) -> Any:
    if isinstance(mechanism, Sampled):
        return _sampled(mechanism, relation)
    write = _WRITERS.get(type(mechanism))
    if write is None:
        raise Refused(mechanism, f"{type(mechanism).__name__} has no event in dp_accounting")
    return write(mechanism, relation)


def _sampled(mechanism: Sampled, relation: Relation) -> Any:
    scheme = mechanism.scheme
    rate = scheme.numbers().get("rate")
    text = "0" if rate is None else spelling(rate)
    if rate is not None and scheme == Poisson(rate=text, relation=Relation.REPLACE_ONE):
        return dpa.PoissonSampledDpEvent(stated(rate), _event(mechanism.inner, mechanism.inner.relation))
    if rate is not None and scheme in (Poisson(rate=text), Poisson(rate=text, relation=Relation.REPLACE_SPECIAL)):
        return dpa.PoissonSampledDpEvent(stated(rate), _event(mechanism.inner, relation))
    size, total = scheme.sizes()
    if size is not None and total is not None and scheme == WithoutReplacement(sample=size, population=total):
        return dpa.SampledWithoutReplacementDpEvent(int(total), int(size), _event(mechanism.inner, relation))
    if rate is not None and scheme == WithoutReplacement(rate=text):
        sizes = (
            "the event needs the sizes, and a rate does not say them; write WithoutReplacement(sample=…, population=…)"
        )
        raise Refused(mechanism, sizes)
    raise Refused(mechanism, f"{type(scheme).__name__} samples have no event in dp_accounting")


def _noisy_sum(mechanism: Any, scale: Exact, relation: Relation) -> float:
    """Return the multiplier of noise on a sum of values that are bounded by C.

    One record moves the sum by C, or by 2C.
    """
    if mechanism.relation is Relation.ANY and relation is Relation.REPLACE_ONE:
        raise Refused(
            mechanism,
            DISTANCES,
        )
    moved = 2 if relation is Relation.REPLACE_ONE else 1
    return _below(moved * Fraction(scale) * Exact(mechanism.averaged_over) / Exact(mechanism.sensitivity))


def _gaussian_event(mechanism: Gaussian, relation: Relation) -> Any:
    if mechanism.correlated:
        raise Refused(mechanism, "an event cannot say that the steps of a run share noise, so its samples have none")
    if relation is Relation.REPLACE_ONE and mechanism.geometry != "ball":
        raise Refused(mechanism, DISTANCES)
    return dpa.GaussianDpEvent(_noisy_sum(mechanism, Exact(mechanism.sigma), relation))


def _kary_event(mechanism: KaryResponse, relation: Relation) -> Any:
    values = int(mechanism.values)
    noise = None if mechanism.p is None else (1 - Fraction(mechanism.p)) * Fraction(values, values - 1)
    if noise is None or noise > 1:
        raise Refused(mechanism, "only responses given by p, of which the true one is the likeliest, have an event")
    return dpa.RandomizedResponseDpEvent(_below(noise), values)


def _discrete_laplace_event(mechanism: DiscreteLaplace, relation: Relation) -> Any:
    if relation is Relation.REPLACE_ONE:
        raise Refused(mechanism, DISTANCES)
    sensitivity = math.floor(Exact(mechanism.sensitivity))
    return dpa.dp_event.DiscreteLaplaceDpEvent(stated(1 / Fraction(Exact(mechanism.scale))), sensitivity)


def _concentrated_event(mechanism: ZeroConcentrated, relation: Relation) -> Any:
    if mechanism.omega is not None or mechanism.slack:
        raise Refused(mechanism, "zCDP at some orders, or with slack, has no event in dp_accounting")
    return dpa.ZCDpEvent(stated(Exact(mechanism.rho)), stated(Exact(mechanism.xi)))


def _selected_event(mechanism: Selected, relation: Relation) -> Any:
    scheme = mechanism.scheme
    mean, shape = float(scheme.mean), float(scheme.shape)
    if (Fraction(repr(mean)), Fraction(repr(shape))) != (scheme.mean, scheme.shape):
        raise Refused(mechanism, "the mean and the shape of an event are floats, and how often it ran has to be exact")
    if mean < 1:
        raise Refused(mechanism, "dp_accounting takes means of at least 1")
    return dpa.dp_event.RepeatAndSelectDpEvent(
        _event(mechanism.inner, relation), mean, math.inf if scheme.number == "poisson" else shape
    )


_WRITERS: Mapping[type, Callable[[Any, Relation], Any]] = {
    Gaussian: _gaussian_event,
    GaussianMixture: mixture_event,
    Laplace: lambda mechanism, relation: dpa.LaplaceDpEvent(_noisy_sum(mechanism, mechanism.scale, relation)),
    KaryResponse: _kary_event,
    RandomizedResponse: lambda mechanism, relation: dpa.RandomizedResponseDpEvent(
        _below(2 - 2 * Fraction(mechanism.p)), 2
    ),
    DiscreteLaplace: _discrete_laplace_event,
    Selected: _selected_event,
    ZeroConcentrated: _concentrated_event,
}


def _below(value: Fraction) -> float:
    """Return the largest float that prints as a decimal of at most this."""
    near = float(value)
    return near if as_printed(near) <= value else rounded_down(value)


# ---- the accountant


class CumulantAccountant(PrivacyAccountant):
    """A PrivacyAccountant of dp_accounting that returns what this library proves.

    JAX Privacy takes it too.

    >>> accountant = CumulantAccountant(NeighboringRelation.REPLACE_ONE)
    >>> event = dpa.SampledWithoutReplacementDpEvent(60_000, 256, dpa.GaussianDpEvent(2.0))
    >>> accountant.compose(event, 4687).get_epsilon(1e-5)
    1.617
    >>> accountant.supports(dpa.PoissonSampledDpEvent(0.1, dpa.RandomizedResponseDpEvent(0.5, 2)))
    False
    """

    def __init__(
        self, neighboring_relation: Any = NeighboringRelation.ADD_OR_REMOVE_ONE, method: Method = "best"
    ) -> None:
        super().__init__(neighboring_relation)
        self._method = method
        self._run: Expression | None = None
        self._lost = False
        self._lock = Lock()

    @property
    def run(self) -> Expression | None:
        """Return the composed run as an expression; None if nothing was composed."""
        return self._run

    def compose(self, event: Any, count: int = 1) -> Any:
        """Record an event so many times; threads may share this accountant."""
        with self._lock:
            return super().compose(event, count)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            part = from_dp_event(event, self._neighboring_relation)
            if do_compose and count and part is not None:
                repeated = part * count
                self._run = repeated if self._run is None else self._run + repeated
        except NotPrivate:
            self._lost = self._lost or (do_compose and count > 0)
        except Refused as refusal:
            return self.CompositionErrorDetails(refusal.event, refusal.reason)
        except CumulantError as error:
            return self.CompositionErrorDetails(event, str(error))
        return None

    def get_epsilon(self, target_delta: Number) -> float:
        """Return the smallest epsilon that is proved at this delta.

        It is infinite if something without noise was composed.
        """
        if self._lost:
            return float("inf")
        return 0.0 if self._run is None else self._run.epsilon(target_delta, method=self._method)

    def get_delta(self, target_epsilon: Number) -> float:
        """Return the smallest delta that is proved at this epsilon."""
        if self._lost:
            return 1.0
        return 0.0 if self._run is None else self._run.delta(target_epsilon, method=self._method)

    def guarantee(self, target_delta: Number) -> Guarantee:
        """Return the smallest proved epsilon with its lower end and its proof."""
        if self._lost or self._run is None:
            raise InputError("nothing private was composed, so there is no guarantee")
        return self._run.guarantee(delta=target_delta)
