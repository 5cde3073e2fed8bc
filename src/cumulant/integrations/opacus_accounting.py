"""The accounting of a loop with Opacus, whatever the law of its batches.

Every step is accounted once, with its noise, its draw and its caveats; `opacus_accountants` has one accountant for each law.
"""

from __future__ import annotations

import copy
import inspect
import secrets
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from opacus.accountants import IAccountant

from cumulant.accounting.choices import Method
from cumulant.accounting.guarantee import Guarantee
from cumulant.domains import Exact, Number
from cumulant.errors import BudgetRefused, InputError, RelationError, shown
from cumulant.integrations.opacus_loading import Draw, Draws, DrawsAndSteps, account_loader
from cumulant.integrations.opacus_steps import (
    CHANGED_AFTER,
    KNOWN,
    AccountedSteps,
    adapts,
    check_new,
    processes,
    random_source,
    unwrapped,
)
from cumulant.integrations.opacus_weights import Weights
from cumulant.lock import Lock
from cumulant.mechanisms.mechanism import Expression
from cumulant.training.budget import Budget
from cumulant.training.card import Setting, Statement, compose_statement
from cumulant.training.sampler import Sampler
from cumulant.training.sgd import without_lower_end

CAVEATS = (
    "noise was added in floating point: the guarantee is for ideal noise",
    "clipping was computed in float32: norms may exceed the bound by rounding",
    "the number of gradients in a step was compared with the records that were drawn for it, not their contents",
    "rows were taken for records: row i of what a layer is given must be of record i of the batch",
    "only weights of the module were watched: whatever else was trained on these records is not covered",
)
PUBLIC_SIZES = "the number of records, the length of the loader and the expected batch size are public"
ADAPTIVE = (
    "adaptive clipping divides by the size of a Poisson sample without noise and counts with sensitivity 1, which is not what "
    "Opacus accounts for; use it with samples of fixed size"
)

RANDOM_ROWS = (
    "rand_on_empty=True puts a random record into empty samples, which shows that they were empty; leave it out"
)
UNWATCHED = "wrap_model=False leaves nothing that could be watched from clipping to noise; leave it out"
LOADER = {"module", "optimizer", "data_loader", "poisson_sampling", "distributed", "clipping", "rand_on_empty"}
"""Names in Opacus' make_private that tell which loader and which optimizer the hook is for."""

GIVEN_KEY = "samples came from a key that was given: who knows it knows the samples"
LOADED_KEY = "samples came from a key that was set after make_private: choosing among keys chooses samples"
REJECTED = (
    "another loader of as many records handed out batches before that no step used: choosing loaders chooses samples"
)
ANOTHER_ENGINE = "another engine accounted for steps of this module too: its guarantee must be added to this one"
PLAN_CHANGED = (
    "the noise or the sampling changed during the run: epsilon holds if all changes were fixed before the first step"
)
OTHER_WEIGHTS = "weights at the first step were not those of the loaded state: steps between the two count as well"

Hook = Callable[[Any], None]

_ACCOUNTANTS: weakref.WeakKeyDictionary[Any, list[weakref.ref[Accountant]]] = weakref.WeakKeyDictionary()
"""The accountants of every module that was made private, by the module inside the wrapper of Opacus."""


class Accountant(IAccountant):
    """The common base: a history of (noise multiplier, rate, steps).

    Epsilon is a function of the history.
    """

    name = ""
    method: Method = "best"  # "rdp" is faster and a little larger
    adaptive = True  # whether adaptive clipping is what the noise multiplier says
    assumes = ""  # what the accounting assumes of the loop
    per_step = True  # whether every step is accounted for by itself; else every pass is
    secret_samples = True  # whether the proof needs that nobody knows the samples
    secret_sizes = False  # whether the number of records in a sample is secret

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
        self.divisor: float | None = None
        """The constant that sums are divided by, where make_private sets it."""
        self._weights = Weights()
        self._noise_states: set[bytes] = set()
        self._drawn_here: set[str] = set()  # keys of which a step of this process used a draw
        self._used: dict[str, int] = {}  # of every key, the number after the last draw that a step used
        self._sessions: dict[str, int] = {}  # steps of earlier processes that are part of the history
        self._begin_session()
        self._entries: Counter[tuple[float, float | str]] = Counter()  # steps, or passes, that the history must have
        self._budget: Budget | None = None
        self._budget_limit: Any = None
        self._charged_budget: tuple[Budget | None, int] = (
            None,
            0,
        )  # the budget given as limit, and its steps from here
        self._draws: list[Draws] = []
        self._loaded_weights: set[int] = set()  # fingerprints that the weights had when the loaded state was saved
        self._noticed: list[str] = []
        self._lock = Lock()

    def _begin_session(self) -> None:
        """Count steps from none, under a new random name by which later states are recognised."""
        self._session, self._session_steps = secrets.token_hex(8), 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies; for a copy the steps so far are those of another process."""
        with self._lock:
            return {**vars(self), "_sessions": self._all_sessions(), "_weights": Weights()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin_session()

    def _all_sessions(self) -> dict[str, int]:
        return {**self._sessions, **({self._session: self._session_steps} if self._session_steps else {})}

    @classmethod
    def mechanism(cls) -> str:
        return cls.name

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return the caveats: what the guarantee does not cover."""
        open_draws = sum(draws.unused for draws in self._draws)
        left = (f"{open_draws} batches were handed out that no step used",) if open_draws else ()
        later = (CHANGED_AFTER,) if self.taken and self._weights.weights_changed() else ()
        return (*CAVEATS, *self._noticed, *left, *later)

    # ---- what ran

    def noisy(self, noise: float, rate: float | str) -> Expression:
        """Return one step of the history as an expression."""
        raise NotImplementedError

    def run(self) -> Expression | None:
        """Return all of the history as an expression; None before the first step."""
        whole: Expression | None = None
        for noise, rate, count in self._whole_history():
            part = self.noisy(noise, rate) * count
            whole = part if whole is None else whole + part
        return whole

    def _whole_history(self) -> tuple[tuple[float, float | str, int], ...]:
        """Return the history; InputError if steps are missing from it."""
        with self._lock:
            if _total_steps(self.history) < self._entries.total():
                raise InputError(
                    f"the history has {_total_steps(self.history)} entries, but {self._entries.total()} were accounted: steps "
                    "were removed from it, and they still count. Use a new engine for a new run"
                )
            if self._entries - _counted(self.history):
                raise InputError(
                    "entries of the history were changed, and what ran still counts. Use a new engine for a new run"
                )
            return tuple(self.history)

    def get_epsilon(self, delta: Number, *, method: Method | None = None) -> float:
        """Return the smallest epsilon that is proved for the history; 0 before the first step."""
        run = self.run()
        return 0.0 if run is None else run.epsilon(delta, method=method or self.method)

    def guarantee(self, delta: Number) -> Guarantee:
        """Return the smallest proved epsilon with its proof, and its lower end unless a pass was broken off."""
        run = self.run()
        if run is None:
            raise InputError("no step was accounted yet")
        return self._answer(run, delta, "best")

    def _answer(self, run: Expression, delta: Number, method: Method) -> Guarantee:
        found = run.guarantee(delta=delta, method=method)
        return found if self._has_whole_passes() else without_lower_end(found)

    def _has_whole_passes(self) -> bool:
        """Return True if all that is charged ran to its end, so that the loop needs what the history needs."""
        return True

    def statement(
        self, deltas: Iterable[Number], setting: Setting, *, audit: Mapping[str, Any] | None = None
    ) -> Statement:
        """Return the statement about the accounted run.

        It has the assumptions of the loop and the caveats of Opacus.
        """
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
            assumptions=[self.assumes],
            caveats=self.caveats,
            audit=audit,
            records=self.records,
        )

    def spent(self, delta: Number, *, method: Method = "rdp") -> dict[str, Any]:
        """Return the spent epsilon so far, as a plain dict to log."""
        run = self.run()
        found = None if run is None else self._answer(run, delta, method)
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
            self._charge_limit(part)
            self._add_entry(noise, sample_rate)
            self._count_step()

    def _add_entry(self, noise: float, rate: float | str) -> None:
        """Add a step, or a pass, to the history; a change of plan is a caveat, because outputs must not choose it."""
        if self.history and self.history[-1][:2] == (noise, rate):
            self.history[-1] = (noise, rate, self.history[-1][2] + 1)
        else:
            if self.history:
                self.notice(PLAN_CHANGED)
            self.history.append((noise, rate, 1))
        self._entries[noise, rate] += 1

    def _count_step(self) -> None:
        self.taken += 1
        self._session_steps += 1

    def _check(self, noise: float, rate: float | str) -> None:
        """Check that this step may follow the others."""

    def account(self, noise: float, rate: float | str, draw: Draw) -> None:
        """Account for one step that used one draw."""
        self.step(noise_multiplier=noise, sample_rate=rate)

    @property
    def per(self) -> str:
        """Return "step" if every step is accounted for by itself, "pass" if every pass is."""
        return "step" if self.per_step else "pass"

    def fits(self) -> bool:
        """Check that one more step like the last one, or one more pass, fits into the limit.

        Nothing is counted.
        """
        with self._lock:
            budget = self._limited()
            if budget is None or not self.history:
                return True
            noise, rate, _ = self.history[-1]
            try:
                copy.deepcopy(budget).allow(self.noisy(noise, rate), per=self.per)
            except BudgetRefused:
                return False
            return True

    def notice(self, caveat: str) -> None:
        """Add a caveat, once."""
        with self._lock:
            if caveat not in self._noticed:
                self._noticed.append(caveat)

    def _charge_limit(self, part: Expression) -> None:
        """Take a step, or a pass, from the limit; BudgetRefused if it does not fit."""
        budget = self._limited()
        if budget is not None:
            budget.allow(part, per=self.per)
            if budget is self.limit:
                self._charged_budget = budget, budget.taken

    def _limited(self) -> Budget | None:
        """Return the budget of the limit, with all of the history taken from it; None without a limit."""
        if self.limit is None:
            return None
        if self._budget is None or self._budget_limit is not self.limit:
            self._budget_limit = self.limit
            given = self.limit if isinstance(self.limit, Budget) else Budget(*self.limit)
            if given.taken and not (self._charged_budget[0] is given and self._charged_budget[1] == given.taken):
                self._budget_limit = None
                raise InputError(
                    f"the budget that was given as limit has {given.taken} steps that this accountant did not take, and they "
                    "would not count here. Give every engine a new Budget; the guarantees of several engines add up"
                )
            # one that was used here counts from none again, because the history is counted below
            budget = Budget.from_terms(given.terms()) if given.taken else given
            self._budget = None
            for noise, rate, count in self.history:  # what a checkpoint brought along
                budget.allow(self.noisy(noise, rate), count, per=self.per)
                if budget is self.limit:
                    self._charged_budget = budget, budget.taken
            self._budget = budget
        return self._budget

    def get_optimizer_hook_fn(self, sample_rate: float) -> Hook:
        """Return the hook that `make_private` attaches.

        It watches the loader and the optimizer that it is called for.
        """
        frame = inspect.currentframe()
        caller = frame.f_back.f_locals if frame is not None and frame.f_back is not None else {}
        if not caller.keys() >= LOADER:
            raise InputError(
                "this accountant reads the law from the loader, and there is none here; use PrivacyEngine.make_private, or "
                "call step(noise_multiplier=…, sample_rate=…) yourself if you know how batches are drawn"
            )
        if caller["rand_on_empty"]:
            raise InputError(RANDOM_ROWS)
        if not isinstance(caller["module"], torch.nn.Module):
            raise InputError(UNWATCHED)
        check_new(caller["optimizer"])
        loader, optimizer, law = caller["data_loader"], caller["optimizer"], self.law
        rate = self._stock(caller, sample_rate) if law is None else self.text(law)
        world = 1 if law is None else law.world
        if processes() != world:
            raise InputError(unwrapped(processes()))
        self.records = len(loader.dataset)
        drawn_by_torch = getattr(loader.batch_sampler, "generator", None) if law is None else None
        draws = account_loader(loader, once=law is None and not self.per_step, fresh=self.secret_samples)
        inner = getattr(caller["module"], "_module", caller["module"])
        siblings = _ACCOUNTANTS.setdefault(inner, [])
        siblings.append(weakref.ref(self))
        mark = "" if law is None else law.mark()

        def account(noise: float, draw: Draw) -> None:
            nonlocal mark
            if draw.mark != mark and draws.used:
                raise DrawsAndSteps(
                    f"{draw} comes from another key than the draws before it. Choosing among keys changes the law of the "
                    "sample. Load the state of a sampler before its first step"
                )
            if draw.mark in self._drawn_here and draw.number > self._used[draw.mark]:
                raise DrawsAndSteps(
                    f"{draw} comes after draws of the same key that no step used. Choosing among draws changes the law of the "
                    "sample. Leave the state of the sampler as it is"
                )
            if draw.number < self._used.get(draw.mark, 0):
                raise DrawsAndSteps(
                    f"{draw} was drawn by the same key before, and a step used it. The same sample twice is no fresh one. Load "
                    "the last state of the sampler, or leave the key out"
                )
            if not self.adaptive and adapts(optimizer):
                raise InputError(ADAPTIVE)
            loader.batch_sampler.check_rate()
            self.account(noise, rate, draw)
            if self._loaded_weights and not self._loaded_weights.issuperset(self._weights.fingerprints()):
                self.notice(OTHER_WEIGHTS)
            self._loaded_weights = set()
            if draw.mark != mark:
                self.notice(LOADED_KEY)
                mark = draw.mark
            if draw.mark:
                self._used[draw.mark] = draw.number + 1
                self._drawn_here.add(draw.mark)
            if draws.chosen:
                self.notice(REJECTED)
            if any(other() not in (self, None) and getattr(other(), "taken", 0) for other in siblings):
                self.notice(ANOTHER_ENGINE)
            self.notice(steps.noise_source())
            if law is None and self.secret_samples:
                self.notice(random_source("samples", KNOWN, drawn_by_torch, "cpu"))

        steps = AccountedSteps(caller["module"], optimizer, draws, account, world, self._weights)
        steps.use_secret(self.generator)
        steps.notice, steps.states = self.notice, self._noise_states
        if self.secret_sizes:
            steps.divisor = optimizer.expected_batch_size if self.divisor is None else self.divisor
        steps.attach()
        self._draws.append(draws)
        if self._copies_another(self._weights.fingerprints()[-1:]):
            self.notice(ANOTHER_ENGINE)
        return steps.hook

    def _copies_another(self, found: list[int]) -> bool:
        """Check that another accountant of this process trained a module with the same weights."""
        others = {ref() for siblings in list(_ACCOUNTANTS.values()) for ref in siblings} - {None, self}
        return any(
            not set(found).isdisjoint(other._weights.fingerprints()) for other in others if other and other.taken
        )

    def _stock(self, caller: Mapping[str, Any], rate: float) -> float | str:
        """Return the rate of a loader of Opacus or of the user, or raise InputError."""
        raise NotImplementedError

    def text(self, sampler: Sampler) -> str:
        """Return the rate of one of our samplers as the history spells it."""
        raise InputError(f"{self.name} does not account for {type(sampler).__name__}; choose the accountant of its law")

    # ---- checkpoints

    def state_dict(self, destination: Any = None) -> Any:
        """Return the history with the limit and the caveats, as plain data.

        It also has which draws of which key were used, and a checksum of the weights of each module.
        """
        state = super().state_dict(destination)
        limit = self.limit if isinstance(self.limit, Budget | None) else Budget(*self.limit)
        state["limit"] = None if limit is None else limit.terms()
        state["caveats"] = list(self._noticed)
        state["draws"], state["sessions"] = dict(self._used), self._all_sessions()
        state["weights"] = self._weights.fingerprints() if self.taken else sorted(self._loaded_weights)
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], *, forget: bool = False) -> None:
        """Go on from the state of an accountant of the same name; anything else is refused.

        A state without all steps that ran in this process is refused, because those steps still count. With `forget=True`
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
            sessions = {str(name): int(count) for name, count in dict(state_dict.get("sessions", {})).items()}
            known = sessions.pop(self._session, 0) >= self._session_steps and _contains(history, self.history)
            if self._session_steps and not forget and not known:
                raise InputError(
                    f"the state has {_total_steps(history)} steps, but {_total_steps(self.history)} were accounted here: they "
                    "still count if anybody or any program saw anything of them. Load the weights alone, or give forget=True"
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
            self._loaded_weights = {int(each) for each in state_dict.get("weights", ())}
            self._entries = _counted(history)
            self._sessions = sessions
            if not known:
                self._begin_session()
            for mark, number in dict(state_dict.get("draws", {})).items():
                self._used[str(mark)] = max(int(number), self._used.get(str(mark), 0))
            for caveat in state_dict.get("caveats", ()):
                self.notice(str(caveat))


def _total_steps(history: list[tuple[float, float | str, int]]) -> int:
    return sum(count for _, _, count in history)


def _counted(history: list[tuple[float, float | str, int]]) -> Counter[tuple[float, float | str]]:
    """Return how often a history has each noise multiplier and rate."""
    found: Counter[tuple[float, float | str]] = Counter()
    for noise, rate, count in history:
        found[noise, rate] += count
    return found


def _contains(history: list[tuple[float, float | str, int]], others: list[tuple[float, float | str, int]]) -> bool:
    """Check that a history has every step of another one."""
    return not _counted(others) - _counted(history)


class PassAccountant(Accountant):
    """An accountant of whole passes: every pass of which a step ran counts once, and as a whole."""

    per_step = False

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self._charged: dict[Any, float] = {}

    def step(self, *, noise_multiplier: float, sample_rate: float | str) -> None:
        """Account for a step of which no pass is known: it counts as a pass of its own."""
        self._charge(float(noise_multiplier), sample_rate, None)

    def account(self, noise: float, rate: float | str, draw: Draw) -> None:
        self._charge(noise, rate, self._pass_of(rate, draw))

    def _pass_of(self, rate: float | str, draw: Draw) -> Any:
        """Return the identity of the pass of a draw."""
        raise NotImplementedError

    def _steps_of(self, rate: float | str) -> int | None:
        """Return the steps of one whole pass; None if nobody knows."""
        raise NotImplementedError

    def _has_whole_passes(self) -> bool:
        # no pass has more steps than these, so that the sums agree only if each pass has all of its own
        whole = [(self._steps_of(rate), count) for _, rate, count in tuple(self.history)]
        return self.steps == sum(count * (length or 0) for length, count in whole)

    def _charge(self, noise: float, rate: float | str, begun: Any) -> None:
        """Charge the pass that a step belongs to, once."""
        if not noise > 0:
            raise InputError(f"noise_multiplier={noise} adds no noise, so nothing is private; it must be positive")
        part = self.noisy(noise, rate)
        with self._lock:
            self._check(noise, rate)
            if begun is None or begun not in self._charged:
                self._charge_limit(part)
                self._add_entry(noise, rate)
                if begun is not None:
                    self._charged[begun] = noise
            elif self._charged[begun] != noise:
                raise InputError(
                    f"noise_multiplier={noise} after {self._charged[begun]} within one pass, which is accounted as a whole "
                    "with one noise; change it between passes"
                )
            self.steps += 1
            self._count_step()

    def __len__(self) -> int:
        return self.steps

    def state_dict(self, destination: Any = None) -> Any:
        """Return the state, with the number of steps."""
        state = super().state_dict(destination)
        state["steps"] = self.steps
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], *, forget: bool = False) -> None:
        with self._lock:
            super().load_state_dict(state_dict, forget=forget)
            self.steps = int(state_dict.get("steps", 0))
            self._charged = {}  # the rest of a pass counts as a pass again
