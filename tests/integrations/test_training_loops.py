"""The page with four loops runs as it stands on the digits data, and says what comes out."""

import re
import runpy
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from tests.docs.test_tutorial import ROOT, agrees, blocks, checked

PAGE = ROOT / "docs" / "training-loops.md"
LOOPS = ("poisson", "balls-in-bins", "fixed-size", "shuffled")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    mpl.use("Agg")
    directory = tmp_path_factory.mktemp("loops")
    found: dict[str, Any] = {"_agrees": agrees, "directory": directory}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        for number, source in enumerate(blocks(PAGE, "python")):
            script = Path(directory / f"block_{number}.py")
            script.write_text(checked(source), encoding="utf-8")
            found = runpy.run_path(str(script), found)
    return found


def cells(loop: str, table: int) -> list[float]:
    """The numbers in the row of a loop in one of the two tables."""
    row = re.findall(rf"^\| {loop} \|.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[table]
    return [float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", row)]


@pytest.mark.parametrize("loop", LOOPS)
def test_the_tables_are_what_comes_out(names: dict[str, Any], loop: str) -> None:
    epsilon, accuracy = cells(loop, 0)
    assert names["plans"][loop].epsilon(1e-5) == pytest.approx(epsilon, rel=0.005)
    assert names["same_noise"][loop] == pytest.approx(accuracy, abs=0.05)
    shown = cells(loop, 1)
    for target, noise, reached in zip((1, 3, 8), shown[::2], shown[1::2], strict=True):
        found = names["same_epsilon"][loop, target]
        assert found[0] == pytest.approx(noise, rel=0.005)
        assert found[1] == pytest.approx(reached, abs=0.05 if reached > 0.85 else 0.2)  # large noise, large spread


def test_every_loop_draws_what_it_says(names: dict[str, Any]) -> None:
    import cumulant as cm

    drawn = {loop: [list(map(int, batch)) for _ in range(3) for batch in names["LOOPS"][loop]()] for loop in LOOPS}
    laws: dict[str, Any] = {
        "poisson": {"rate": "75/1500"},
        "fixed-size": {"sample": 75},
        "balls-in-bins": {"steps": 20},
    }
    for loop, law in laws.items():
        assert min(cm.training.conformance(drawn[loop], 1500, **law).values()) > 1e-7
    assert min(cm.training.conformance(drawn["shuffled"], 1500, sample=75).values()) < 1e-7  # it is no fresh sample
    assert all(len(batches) == 600 for batches in drawn.values())


def test_the_picture_is_drawn_and_shown(names: dict[str, Any]) -> None:
    assert (names["directory"] / "training-loops.png").stat().st_size > 20_000
    assert (ROOT / "docs" / "figures" / "training-loops.png").stat().st_size > 20_000
    assert "(figures/training-loops.png)" in PAGE.read_text(encoding="utf-8")
