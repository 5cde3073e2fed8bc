"""Precision belongs to the process in the ball library: threads must not see each other's."""

from concurrent.futures import ThreadPoolExecutor

import cumulant as cm


def questions() -> list[cm.Expression]:
    sample = cm.WithoutReplacement(rate="0.01")
    bases = [cm.Gaussian(sigma="2.5"), cm.Laplace(scale="1.7"), cm.RandomizedResponse(p="0.7"), cm.PureDP("0.3")]
    return [base @ sample * times for base in bases for times in (1, 100)]


def test_eight_threads_give_the_same_bits_as_one() -> None:
    def ask(run: cm.Expression) -> tuple[float, float]:
        return run.epsilon(delta=1e-7), run.delta(epsilon=2)

    with ThreadPoolExecutor(max_workers=8) as pool:
        together = list(pool.map(ask, questions() * 3))
    alone = [ask(run) for run in questions()]
    assert together == alone * 3


def test_no_precision_is_left_behind() -> None:
    import flint

    before = flint.ctx.prec
    questions()[0].epsilon(delta=1e-7)
    assert flint.ctx.prec == before
