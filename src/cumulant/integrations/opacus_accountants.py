"""What Opacus asks of an accountant, for three ways to draw batches; each reads the law from the loader."""

from __future__ import annotations

import copy
import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from opacus.accountants import IAccountant
from opacus.utils.uniform_sampler import UniformWithReplacementSampler

from cumulant.accounting.guarantee import Guarantee
from cumulant.domains import Exact, Number, spelling
from cumulant.errors import BudgetRefused, InputError, RelationError, shown
from cumulant.integrations.opacus_loading import Draw, Draws, account_loader, check_shuffled
from cumulant.integrations.opacus_steps import (
    KNOWN,
    AccountedSteps,
    adapts,
    processes,
    random_source,
    unwrapped,
)
from cumulant.lock import Lock
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.mechanism import Expression
from cumulant.mechanisms.shuffled_batches import ShuffledBatches
from cumulant.sampling.poisson import Poisson
from cumulant.sampling.without_replacement import WithoutReplacement
from cumulant.training.budget import Budget
from cumulant.training.card import Setting, Statement, compose_statement
from cumulant.training.sampler import FixedSizeSampler, PoissonSampler, Sampler
from cumulant.training.sgd import SAMPLINGS

CAVEATS = (
    "noise was added in floating point: the guarantee is for ideal noise",
    "clipping was computed in float32: norms may exceed the bound by rounding",
    "the number of gradients in a step was compared with the records that were drawn for it, not their contents",
)
PUBLIC_SIZES = "the number of records, the length of the loader and the expected batch size are public"
ADAPTIVE = (
    "adaptive clipping divides by the size of a Poisson sample without noise and counts with sensitivity 1, which is not what "
    "Opacus accounts for; use it with samples of fixed size"
)

RANDOM_ROWS = (
    "rand_on_empty=True puts a random record into empty samples, which shows that they were empty; leave it out"
)
LOADER = {"module", "optimizer", "data_loader", "poisson_sampling", "distributed", "clipping", "rand_on_empty"}
"""Names in Opacus' make_private that tell which loader and which optimizer the hook is for."""

Hook = Callable[[Any], None]


def torch_rate(rate: float) -> Fraction:
    """The probability of `torch.rand(n) < rate`: rand is a multiple of 2^-24, and the rate is compared as a float32.

    >>> float(torch_rate(0.001) / Fraction(1, 1000) - 1)
    4.7e-05
    """
    return Fraction(math.ceil(Fraction(float(np.float32(rate))) * 2**24), 2**24)


class Accountant(IAccountant):
    """What the three have in common: a history of (noise multiplier, rate, steps), of which epsilon is a function."""

    name = ""
    method = "best"  # "rdp" is faster and a little larger
    adaptive = True  # whether adaptive clipping is what the noise multiplier says
    sampling = ""  # the name in SAMPLINGS of the loop that is accounted
    secret_samples = True  # whether the proof needs that nobody knows the samples

    def __init__(self) -> None:
        self.history: list[tuple[float, float | str, int]] = []
        self.limit: tuple[Number, Number] | Budget | None = None
        """(epsilon, delta), or a Budget with a schedule: the optimizer refuses the step that would exceed it."""
        self.law: Sampler | None = None
        """The sampler that batches come from, where it is one of ours."""
        self.taken = 0
        """Steps that were accounted in this process, whatever a checkpoint brought along."""
        self.records: int | None = None
        """The number of records of the data set, once a loader was seen; deltas of a statement are compared with it."""
        self.generator: Any = None
        """The secret generator that noise comes from, where make_private made one."""
        self._budget: Budget | None = None
        self._draws: list[Draws] = []
        self._noticed: list[str] = []
        self._lock = Lock()

    @classmethod
    def mechanism(cls) -> str:
        return cls.name

    @property
    def caveats(self) -> tuple[str, ...]:
        """What the guarantee does not cover."""
        open_draws = sum(draws.unused for draws in self._draws)
        left = (f"{open_draws} batches were handed out that no step used",) if open_draws else ()
        return (*CAVEATS, *self._noticed, *left)

    # ---- what ran

    def noisy(self, noise: float, rate: float | str) -> Expression:
        """One step of the history as an expression."""
        raise NotImplementedError

    def run(self) -> Expression | None:
        """All of the history as an expression; None before the first step."""
        whole: Expression | None = None
        for noise, rate, count in tuple(self.history):
            part = self.noisy(noise, rate) * count
            whole = part if whole is None else whole + part
        return whole

    def get_epsilon(self, delta: Number, method: str | None = None) -> float:
        """The smallest epsilon that is proved for the history; 0 before the first step."""
        run = self.run()
        return 0.0 if run is None else run.epsilon(delta, method or self.method)

    def guarantee(self, delta: Number) -> Guarantee:
        """The same with its lower end and what proves it."""
        run = self.run()
        if run is None:
            raise InputError("no step was accounted yet")
        return run.guarantee(delta)

    def statement(
        self, deltas: Iterable[Number], setting: Setting, *, audit: Mapping[str, Any] | None = None
    ) -> Statement:
        """Return the statement about what was accounted, with the assumptions of the loop and the caveats of Opacus."""
        run = self.run()
        if run is None:
            raise InputError("no step was accounted yet, so there is nothing to state")
        if getattr(setting, "noise", "float") != "float":
            raise InputError(f"noise={setting.noise!r}, but Opacus adds noise in floating point; give noise='float'")
        return compose_statement(
            run,
            deltas,
            setting,
            guarantee=self.guarantee,
            assumptions=[SAMPLINGS[self.sampling].assumes],
            caveats=self.caveats,
            audit=audit,
            records=self.records,
        )

    def spent(self, delta: Number, method: str = "rdp") -> dict[str, Any]:
        """What is spent so far, as a plain dict to log."""
        run = self.run()
        found = None if run is None else run.guarantee(delta, method)
        return {
            "step": len(self),
            "epsilon": 0.0 if found is None else found.epsilon,
            "epsilon_lower": None if found is None else found.lower,
            "delta": float(Exact(delta)),
            "relation": "any" if run is None else str(run.relation),
        }

    def __len__(self) -> int:
        return sum(count for _, _, count in tuple(self.history))

    # ---- steps

    def step(self, *, noise_multiplier: float, sample_rate: float | str) -> None:
        """Account for one step, or raise before anything is changed."""
        noise = float(noise_multiplier)
        if not noise > 0:
            raise InputError(f"noise_multiplier={noise} adds no noise, so nothing is private; it must be positive")
        part = self.noisy(noise, sample_rate)
        with self._lock:
            self._check(noise, sample_rate)
            budget = self._limited()
            if budget is not None:
                budget.allow(part)
            if self.history and self.history[-1][:2] == (noise, sample_rate):
                self.history[-1] = (noise, sample_rate, self.history[-1][2] + 1)
            else:
                self.history.append((noise, sample_rate, 1))
            self.taken += 1

    def _check(self, noise: float, rate: float | str) -> None:
        """Whether this step may stand behind the others."""

    def account(self, noise: float, rate: float | str, draw: Draw) -> None:
        """Account for one step that used one draw."""
        self.step(noise_multiplier=noise, sample_rate=rate)

    @property
    def per_step(self) -> bool:
        """Return True if every step is accounted for by itself; else every pass is."""
        return SAMPLINGS[self.sampling].per_step

    def fits(self) -> bool:
        """Tell whether one more step like the last one, or one more pass, fits into the limit; nothing is counted."""
        with self._lock:
            budget = self._limited()
            if budget is None or not self.history:
                return True
            noise, rate, _ = self.history[-1]
            try:
                copy.deepcopy(budget).allow(self.noisy(noise, rate))
            except BudgetRefused:
                return False
            return True

    def _notice(self, caveat: str) -> None:
        with self._lock:
            if caveat not in self._noticed:
                self._noticed.append(caveat)

    def _limited(self) -> Budget | None:
        if self.limit is None:
            return None
        if self._budget is None:
            given = self.limit if isinstance(self.limit, Budget) else Budget(*self.limit)
            # one that was used already counts from none again, because the history is counted below
            self._budget = Budget.from_terms(given.terms()) if given.taken else given
            for noise, rate, count in self.history:  # what a checkpoint brought along
                self._budget.allow(self.noisy(noise, rate), count)
        return self._budget

    def get_optimizer_hook_fn(self, sample_rate: float) -> Hook:
        """The hook that `make_private` attaches; it watches the loader and the optimizer that it is called for."""
        frame = inspect.currentframe()
        caller = frame.f_back.f_locals if frame is not None and frame.f_back is not None else {}
        if not caller.keys() >= LOADER:
            raise InputError(
                "this accountant reads the law from the loader, and there is none here; use PrivacyEngine.make_private, or "
                "call step(noise_multiplier=…, sample_rate=…) yourself if you know how batches are drawn"
            )
        if caller["rand_on_empty"]:
            raise InputError(RANDOM_ROWS)
        loader, optimizer, law = caller["data_loader"], caller["optimizer"], self.law
        rate = self._stock(caller, sample_rate) if law is None else self.text(law)
        world = 1 if law is None else law.world
        if processes() != world:
            raise InputError(unwrapped(processes()))
        self.records = len(loader.dataset)
        drawn_rate = getattr(loader.batch_sampler, "sample_rate", None)
        drawn_by_torch = getattr(loader.batch_sampler, "generator", None) if law is None else None
        source = loader.batch_sampler
        draws = account_loader(loader, once=not self.per_step)

        def account(noise: float, draw: Draw) -> None:
            if not self.adaptive and adapts(optimizer):
                raise InputError(ADAPTIVE)
            if law is None and getattr(source, "sample_rate", None) != drawn_rate:
                raise InputError(
                    f"the rate of the sampler was {drawn_rate} and is {source.sample_rate} now; make a new loader"
                )
            self.account(noise, rate, draw)
            self._notice(steps.noise_source())
            if law is None and self.secret_samples:
                self._notice(random_source("samples", KNOWN, drawn_by_torch, "cpu"))

        steps = AccountedSteps(caller["module"], optimizer, draws, account, world)
        steps.secret = self.generator
        steps.attach()
        self._draws.append(draws)
        return steps.hook

    def _stock(self, caller: Mapping[str, Any], rate: float) -> float | str:
        """Return the rate of a loader of Opacus or of the user, or raise InputError."""
        raise NotImplementedError

    def text(self, sampler: Sampler) -> str:
        """The rate of one of our samplers as it stands in the history."""
        raise InputError(f"{self.name} does not account for {type(sampler).__name__}; choose the accountant of its law")

    # ---- checkpoints

    def state_dict(self, destination: Any = None) -> Any:
        """Return the history with the limit and the caveats that were noticed, as plain data."""
        state = super().state_dict(destination)
        limit = self.limit if isinstance(self.limit, Budget | None) else Budget(*self.limit)
        state["limit"] = None if limit is None else limit.terms()
        state["caveats"] = list(self._noticed)
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], *, forget: bool = False) -> None:
        """Go on from the state of an accountant of the same name; anything else is refused.

        A state that has fewer steps than ran in this process is refused, because those steps still count. With `forget=True`
        you say that nobody and no program saw anything of them. The limit of the state is taken over; a limit that was set
        here and differs is refused, unless `forget=True` keeps it.
        """
        if not isinstance(state_dict, Mapping) or not {"history", "mechanism"} <= state_dict.keys():  # type: ignore[redundant-expr]
            raise InputError("this is not the state of an accountant; give what state_dict() returned")
        found = state_dict["mechanism"]
        if found != self.name:
            raise RelationError(
                f"this is the state of {shown(found)}, whose samples and neighbours are others than those of {self.name}; "
                "go on with that accountant, or read what it says by from_opacus(state_dict)"
            )
        history = [(float(noise), rate, int(count)) for noise, rate, count in state_dict["history"]]
        for noise, rate, _ in history:
            self.noisy(noise, rate)
        terms = state_dict.get("limit")
        limit = None if terms is None else Budget.from_terms(terms)
        with self._lock:
            if self.taken and not forget and not _contains(history, self.history):
                raise InputError(
                    f"the state has {_counted(history)} steps, but {_counted(self.history)} were accounted here: they still "
                    "count if anybody or any program saw anything of them. Load the weights alone, or give forget=True"
                )
            if limit is not None and (self.limit is None or not forget):
                mine = self.limit if isinstance(self.limit, Budget | None) else Budget(*self.limit)
                if mine is not None and mine.terms() != limit.terms():
                    raise InputError(
                        f"the state was trained under the limit {limit.limit}, but this accountant has {mine.limit}: set no "
                        "limit before loading, or give forget=True to keep the new one"
                    )
                plain = not (terms or {}).get("adaptive") and (terms or {}).get("schedule") is None
                self.limit = limit.limit if plain else limit
            self.history, self._budget = history, None
            for caveat in state_dict.get("caveats", ()):
                self._notice(str(caveat))


def _counted(history: list[tuple[float, float | str, int]]) -> int:
    return sum(count for _, _, count in history)


def _contains(history: list[tuple[float, float | str, int]], others: list[tuple[float, float | str, int]]) -> bool:
    """Tell whether a history has every step of another one."""
    left: Counter[tuple[float, float | str]] = Counter()
    for noise, rate, count in history:
        left[noise, rate] += count
    for noise, rate, count in others:
        left[noise, rate] -= count
    return all(count >= 0 for count in left.values())


class PoissonAccountant(Accountant):
    """Poisson samples and add/remove neighbours: the stock `make_private` of Opacus, on one process.

    The rate is that of the sampler, and where `torch.rand` decides it is the probability of that, not its argument.
    """

    name = "cumulant"
    sampling = "poisson"
    adaptive = False

    @property
    def caveats(self) -> tuple[str, ...]:
        return (*super().caveats, PUBLIC_SIZES)

    def noisy(self, noise: float, rate: float | str) -> Expression:
        exact = Exact(rate) if isinstance(rate, str) else torch_rate(rate)
        gaussian = Gaussian.from_clipping(norm=1, noise=noise, relation="add-remove")
        return gaussian @ Poisson(rate=spelling(Fraction(exact)))

    def _stock(self, caller: Mapping[str, Any], rate: float) -> float | str:
        loader = caller["data_loader"]
        if not caller["poisson_sampling"]:
            raise InputError(
                "poisson_sampling=False: these batches are no Poisson samples and have not their epsilon; use "
                'PrivacyEngine(accountant="cumulant-shuffled"), or make_private of cumulant.integrations.opacus with sample=…'
            )
        if caller["distributed"]:
            raise InputError(
                "Opacus draws Poisson samples on each process from the seed of that process and skips empty ones, so "
                "inclusions are neither independent nor of this rate; use make_private of cumulant.integrations.opacus with "
                "sample=…"
            )
        if caller["clipping"] == "adaptive":
            raise InputError(ADAPTIVE)
        if type(loader.batch_sampler) is not UniformWithReplacementSampler:
            raise InputError(f"{type(loader.batch_sampler).__name__} is no Poisson sampler that this accountant knows")
        exact = torch_rate(loader.batch_sampler.sample_rate)
        return f"{exact.numerator}/{exact.denominator}"

    def text(self, sampler: Sampler) -> str:
        if not isinstance(sampler, PoissonSampler):
            return super().text(sampler)
        return f"{sampler.rate.numerator}/{sampler.rate.denominator}"


class FixedSizeAccountant(Accountant):
    """Uniform samples of a fixed size and replace-one neighbours, drawn by our sampler: see `make_private`."""

    name = "cumulant-fixed-size"
    sampling = "fixed-size"

    def noisy(self, noise: float, rate: float | str) -> Expression:
        sample, slash, population = rate.partition("/") if isinstance(rate, str) else ("", "", "")
        if not slash:
            raise InputError(
                f"sample_rate={shown(rate)} does not say how many of how many records are drawn; use make_private or "
                "make_private_with_epsilon of cumulant.integrations.opacus, or give it as text like '64/1797'"
            )
        gaussian = Gaussian.from_clipping(norm=1, noise=noise, relation="replace-one")
        return gaussian @ WithoutReplacement(sample=sample, population=population)

    def _check(self, noise: float, rate: float | str) -> None:
        records = {str(seen).partition("/")[2] for _, seen, _ in self.history} | {str(rate).partition("/")[2]}
        if len(records) > 1:
            raise InputError(
                f"the data set had {' and '.join(sorted(records))} records: replace-one neighbours have one size, and a "
                "history is about one data set; use a new engine"
            )

    def _stock(self, caller: Mapping[str, Any], rate: float) -> float | str:
        raise InputError(
            "PrivacyEngine.make_private keeps a loader that does not draw samples of fixed size afresh; use make_private of "
            "cumulant.integrations.opacus with sample=…"
        )

    def text(self, sampler: Sampler) -> str:
        if not isinstance(sampler, FixedSizeSampler):
            return super().text(sampler)
        return f"{sampler.sample}/{sampler.population}"


class ShuffledAccountant(Accountant):
    """Loaders that visit each record at most once per pass, and replace-one neighbours: no amplification.

    Every pass that was started counts as one noisy sum of sensitivity 2C. Given the order, neighbours differ in one batch of
    the pass; steps before it agree, steps after it use its noisy output only. Mixtures over orders keep every bound.
    """

    name = "cumulant-shuffled"
    sampling = "shuffled"
    PASS = "pass"

    secret_samples = False

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self._charged: set[int] = set()

    def noisy(self, noise: float, rate: float | str) -> Expression:
        return Gaussian.from_clipping(norm=1, noise=noise, relation="replace-one") @ ShuffledBatches()

    def run(self) -> Expression | None:
        whole: Expression | None = None
        for noise, rate, count in tuple(self.history):
            # Opacus calibrates with (noise, 1 / len(loader), steps)
            passes = count if rate == self.PASS else -(-count // max(1, round(1 / float(rate))))
            part = self.noisy(noise, rate) * passes
            whole = part if whole is None else whole + part
        return whole

    def step(self, *, noise_multiplier: float, sample_rate: float | str) -> None:
        """Account for a step of which no pass is known: it counts as a pass of its own."""
        self._charge(float(noise_multiplier), None)

    def account(self, noise: float, rate: float | str, draw: Draw) -> None:
        self._charge(noise, draw.pass_number)

    def _charge(self, noise: float, begun: int | None) -> None:
        """Charge the pass that a step belongs to, once."""
        if not noise > 0:
            raise InputError(f"noise_multiplier={noise} adds no noise, so nothing is private; it must be positive")
        with self._lock:
            if self.history and self.history[-1][0] != noise:
                raise InputError(
                    f"noise_multiplier={noise} after {self.history[-1][0]}: passes may overlap, so one noise for all of them "
                    "is accounted; use a new engine and add the two guarantees"
                )
            if begun is None or begun not in self._charged:
                budget = self._limited()
                if budget is not None:
                    budget.allow(self.noisy(noise, self.PASS))
                passes = self.history[-1][2] if self.history else 0
                self.history = [(noise, self.PASS, passes + 1)]
                self._charged |= set() if begun is None else {begun}
            self.steps += 1
            self.taken += 1

    def __len__(self) -> int:
        return self.steps

    def _stock(self, caller: Mapping[str, Any], rate: float) -> float | str:
        if caller["poisson_sampling"] or caller["distributed"]:
            raise InputError(
                "the shuffled accountant takes poisson_sampling=False on one process; for Poisson samples use "
                "accountant='cumulant'"
            )
        check_shuffled(caller["data_loader"])
        return rate

    def state_dict(self, destination: Any = None) -> Any:
        """Return the state, with the number of steps."""
        state = super().state_dict(destination)
        state["steps"] = self.steps
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], *, forget: bool = False) -> None:
        with self._lock:
            super().load_state_dict(state_dict, forget=forget)
            self.steps = int(state_dict.get("steps", 0))
            self._charged = set()  # a resumed run starts a pass anew
