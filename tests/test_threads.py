"""Precision belongs to the process in the ball library: threads must not see each other's."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import flint
import pytest

import cumulant as cm
from cumulant.accounting.cache import forget
from cumulant.numerics.arithmetic import BALLS

Question = Callable[[], object]


def questions() -> list[Question]:
    """Different mechanisms, bounds, conversions, deltas, epsilons and one calibration, each cheap."""
    sample = cm.WithoutReplacement(rate="0.01")
    gaussian, laplace = cm.Gaussian(sigma="2.5"), cm.Laplace(scale="1.7")
    ball, response = cm.Gaussian(sigma="2.5", geometry="ball"), cm.RandomizedResponse(p="0.7")
    pure, promise = cm.PureDP("0.3"), cm.ApproximateDP("0.1", "1e-12")
    masses = cm.from_masses(["0.5", "0.3", "0.2"], ["0.4", "0.3", "0.3"])
    bases = [gaussian, laplace, ball, response, pure, promise, masses]
    mixed = gaussian @ sample * 100 + laplace * 2 + promise @ sample * 10
    found: list[Question] = []
    for base in bases:
        for times in (1, 1000):
            run = base @ sample * times
            found.append(lambda run=run: run.epsilon(delta="1e-7"))  # type: ignore[misc]
            found.append(lambda run=run: run.delta(epsilon=2))  # type: ignore[misc]
            found.append(lambda run=run: run.epsilon(delta="1e-30", bound="caps", conversion="classic"))  # type: ignore[misc]
    for base, bound in [
        (gaussian, "theorem9"),
        (laplace, "pure-extras"),
        (laplace, "theorem27"),
        (response, "one-bit"),
        (gaussian, "positive-part"),
        (masses, "profile"),
        (gaussian, "gaussian-diameter"),
    ]:
        run = base @ sample * 300
        found.append(lambda run=run, bound=bound: run.guarantee(delta="1e-9", bound=bound))  # type: ignore[misc]
    found.append(lambda: mixed.guarantee(delta="1e-6"))
    found.append(lambda: mixed.rdp([2, 8.5, 64]).tolist())
    found.append(lambda: cm.calibrate("Gaussian(sigma=?) * 10", epsilon=1, delta="1e-6", digits=3).value)
    return found


def answers(ask: Callable[[list[Question]], list[object]]) -> list[str]:
    """The answers from empty memories, to the last bit."""
    forget()
    return [repr(answer) for answer in ask(questions())]


def test_eight_threads_give_the_same_bits_as_one() -> None:
    def together(asked: list[Question]) -> list[object]:
        with ThreadPoolExecutor(max_workers=8) as pool:
            return list(pool.map(lambda question: question(), asked * 2))

    before = flint.ctx.prec
    alone = answers(lambda asked: [question() for question in asked])
    assert answers(together) == alone * 2
    assert flint.ctx.prec == before


def test_no_precision_is_left_behind() -> None:
    before = flint.ctx.prec
    for question in questions()[:6]:
        question()
        assert flint.ctx.prec == before


def test_nor_after_an_exception() -> None:
    before = flint.ctx.prec
    with pytest.raises(RuntimeError, match="inside 777"):
        _fail(777)
    assert flint.ctx.prec == before
    run = cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate="0.01")
    with pytest.raises(cm.HypothesisError):
        run.epsilon(delta="1e-6", bound="lemma3")
    cm.from_rdp(rdp=math.sqrt).epsilon(delta="1e-6")  # takes no balls, so the attempt to give it one fails inside
    assert flint.ctx.prec == before


def _fail(bits: int) -> None:
    with BALLS.at(bits):
        raise RuntimeError(f"inside {flint.ctx.prec}")


def test_a_thread_that_fails_leaves_the_lock_to_others() -> None:
    with ThreadPoolExecutor(max_workers=2) as pool:
        with pytest.raises(RuntimeError, match="inside 500"):
            pool.submit(_fail, 500).result()
        answer = pool.submit(lambda: cm.Gaussian(sigma="2.25").epsilon(delta="1e-7"))
        assert answer.result(timeout=60) == cm.Gaussian(sigma="2.25").epsilon(delta="1e-7")


def test_other_threads_keep_their_precision_meanwhile() -> None:
    """A ball asked for at 53 bits while eight threads certify at 128 and more has 53 bits, not theirs."""

    def third(_: int) -> str:
        with BALLS.at(53):
            return str(BALLS.number(1) / 3)

    with ThreadPoolExecutor(max_workers=8) as pool:
        busy = [pool.submit(question) for question in questions()[:24]]
        thirds = set(pool.map(third, range(200)))
        for each in busy:
            each.result()
    assert thirds == {third(0)}
