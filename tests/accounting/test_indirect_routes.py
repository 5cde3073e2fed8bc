"""Other runs are asked exactly where one of them may bound the run."""

import pytest

import cumulant as cm
from cumulant.accounting.indirect_routes import ROUTES


@pytest.mark.parametrize(
    ("text", "indirect"),
    [
        ("Gaussian(sigma=5)", False),
        ("Gaussian(sigma=5) @ Poisson(rate=0.01) * 10 + Laplace(scale=2)", False),
        ("Gaussian(sigma=5) @ Group(size=2)", True),
        ("Laplace(scale=2) + Gaussian(sigma=5) @ RandomAllocation(steps=4)", True),
    ],
)
def test_a_run_says_whether_other_runs_may_bound_it(text: str, indirect: bool) -> None:
    assert cm.parse(text).record().indirect is indirect


def test_the_route_of_a_guarantee_is_explained_by_its_sentences() -> None:
    found = (cm.Laplace(scale=2) @ cm.WithoutReplacement(rate="0.1") * 20 @ cm.Group(size=3)).guarantee(delta="1e-6")
    assert found.route in ROUTES
    assert ROUTES[found.route].proof in found.explain()
    assert ROUTES[found.route].theorem in found.explain()
    assert ROUTES[found.route].arithmetic.format(rigour=found.rigour) in found.explain()
    assert found.verify().holds
