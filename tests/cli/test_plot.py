"""`cumulant plot`: the file, the numbers in it, and refusals."""

import json
import math
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import special

import cumulant as cm
from cumulant.accounting.choices import PictureKind
from cumulant.cli.app import answer

RUN = "Laplace(scale=2) @ WithoutReplacement(rate=0.01) * 100"


def curve(charts: dict[str, Any], kind: str, name: str) -> dict[float, float]:
    found = charts[kind]["curves"][name]
    return dict(zip(found["x"], found["y"], strict=True))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plot") / "run.png"


@pytest.fixture(scope="module")
def printed(drawn: Path) -> Any:
    from contextlib import redirect_stdout
    from io import StringIO

    with redirect_stdout(StringIO()) as out:
        assert answer(["plot", RUN, "--out", str(drawn), "--delta", "1e-6", "--all-bounds", "--json"]) == 0
    return json.loads(out.getvalue())


def test_the_picture_is_written(drawn: Path, printed: Any) -> None:
    assert printed["file"] == str(drawn)
    assert (printed["run"], printed["delta"], printed["relation"]) == (str(cm.parse(RUN)), 1e-6, "replace-one")
    assert list(printed["charts"]) == ["epsilon", "rounds", "rdp", "trade-off"]
    png = drawn.read_bytes()
    assert png.startswith(b"\x89PNG")
    assert 50_000 < len(png) < 400_000


def test_the_interval_is_that_of_the_run(printed: Any) -> None:
    run = cm.parse(RUN)
    truth = run.guarantee(delta=1e-6)
    assert truth.lower is not None
    for kind, place in (("epsilon", 1e-6), ("rounds", 100.0)):
        upper, lower = (curve(printed["charts"], kind, name)[place] for name in ("upper", "lower"))
        assert truth.lower <= upper <= truth.epsilon * 1.01
        assert truth.lower * 0.99 <= lower <= truth.epsilon
    rounds = curve(printed["charts"], "rounds", "rdp")
    assert rounds[100.0] == pytest.approx(run.epsilon(1e-6, method="rdp"), rel=1e-9)
    assert rounds[1.0] == pytest.approx(math.log1p(0.01 * math.expm1(0.5)), rel=1e-3)  # Lemma 3: pure
    assert len(curve(printed["charts"], "rounds", "upper")) == 11


def test_every_bound_that_applies_is_drawn(printed: Any) -> None:
    names = set(printed["charts"]["rdp"]["curves"])
    assert {"theorem9", "theorem27", "lemma3", "best", "lower"} <= names
    assert not names & {"gaussian-ball", "gaussian-diameter", "poisson"}
    best, lower = (curve(printed["charts"], "rdp", name) for name in ("best", "lower"))
    for order, value in best.items():
        assert value == pytest.approx(cm.parse(RUN).rdp(order), rel=1e-9)
        assert lower[order] <= value


def test_the_attack_is_between_guessing_and_pure_privacy(printed: Any) -> None:
    for rate, caught in curve(printed["charts"], "trade-off", "attack").items():
        assert rate <= caught <= min(1.0, rate * math.exp(cm.parse(RUN).pure()) * (1 + 1e-9))
    assert curve(printed["charts"], "trade-off", "guess")[1.0] == 1.0


def test_one_panel_as_svg(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "attack.svg"
    arguments = ["plot", "Gaussian(sigma=1)", "--kind", "trade-off", "--out", str(path)]
    assert answer(arguments) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (f"{path}: trade-off; the numbers are in {path.with_suffix('.csv')}\n", "")
    text = path.read_text()
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert answer([*arguments, "--json"]) == 0
    found = curve(json.loads(capsys.readouterr().out)["charts"], "trade-off", "attack")
    rates = np.array(list(found))
    exact = special.ndtr(special.ndtri(rates) + 1)
    assert np.array(list(found.values())) == pytest.approx(exact, rel=0.04)
    assert path.read_text() == text  # the same numbers give the same file


def test_the_numbers_stand_beside_the_picture(drawn: Path, printed: Any) -> None:
    lines = drawn.with_suffix(".csv").read_text().splitlines()
    assert lines[0] == "chart,curve,x,y"
    curves = [each for chart in printed["charts"].values() for each in chart["curves"].values()]
    assert len(lines) == 1 + sum(len(each["x"]) for each in curves)


def test_python_draws_the_same(tmp_path: Path) -> None:
    figure = cm.parse(RUN).plot(delta=1e-6, kind="rdp", out=tmp_path / "rdp.pdf")
    assert (tmp_path / "rdp.pdf").read_bytes().startswith(b"%PDF")
    (axes,) = figure.axes
    drawn = [line.get_label() for line in axes.get_lines() if not line.get_label().startswith("_")]
    assert drawn == ["theorem9", "best", "lower bound"]
    with pytest.raises(cm.InputError, match="kind='x' is unknown"):
        cm.PureDP(1).plot(kind="x")  # type: ignore[arg-type]
    with pytest.raises(cm.InputError, match="bounds='x' is unknown"):
        cm.PureDP(1).plot(bounds="x")


def luminance(colour: Any) -> float:
    """How light a colour is in grey, from 0 to 1 (ITU-R BT.709)."""
    from matplotlib.colors import to_rgb

    return float(np.dot(to_rgb(colour), [0.2126, 0.7152, 0.0722]))


def told_apart_in_grey(first: Any, second: Any) -> bool:
    """Two lines of a panel: by dashes, by markers, or by a shade that prints differently."""
    dashes = first._unscaled_dash_pattern != second._unscaled_dash_pattern
    marks = first.get_marker() != second.get_marker()
    return dashes or marks or abs(luminance(first.get_color()) - luminance(second.get_color())) > 0.2


@pytest.mark.parametrize("bounds", ["best", "all"])
def test_lines_are_told_apart_in_grey(bounds: str) -> None:
    figure = (cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=0.01) * 10).plot(delta=1e-6, bounds=bounds, kind="rdp")
    (axes,) = figure.axes
    lines = [line for line in axes.get_lines() if not line.get_label().startswith("_")]
    assert len(lines) >= (8 if bounds == "all" else 3)
    for i, first in enumerate(lines):
        for second in lines[:i]:
            assert told_apart_in_grey(first, second), (first.get_label(), second.get_label())


def test_the_looks_of_all_pictures_are_told_apart_in_grey() -> None:
    from cumulant.paper.figures.drawing import FIGURE1, FIGURE2
    from cumulant.plotting.sheet import LOOKS

    for looks in (FIGURE1.looks, FIGURE2.looks):
        assert len({(str(look.dashes), look.marker) for look in looks}) == len(looks)
    for panel in (("rdp", "upper", "lower"), ("best", "lower"), ("attack", "guess"), ("claimed", "measured")):
        assert len({(str(LOOKS[name].dashes), LOOKS[name].marker) for name in panel}) == len(panel)


def test_the_asked_delta_is_marked_with_its_epsilon() -> None:
    run = cm.PureDP("1/2") * 3
    (axes,) = run.plot(delta="1e-6", kind="epsilon").axes
    (mark,) = (line for line in axes.get_lines() if list(line.get_xdata()) == [1e-6, 1e-6])
    assert mark.get_linestyle() != "-"
    (told,) = (text for text in axes.texts if text.get_gid() == "marked")
    assert (told.xy[0], told.get_text()) == (1e-6, "ε = 1.5")


def test_the_used_order_is_marked_and_larger_divergences_are_cut_off() -> None:
    run = cm.parse('Gaussian(sigma=1, relation="add-remove") @ Poisson(rate=1%) * 1000')
    order = run.guarantee(delta=1e-5, method="rdp").evidence.order
    assert order is not None
    (axes,) = run.plot(delta=1e-5, kind="rdp").axes
    (told,) = (text for text in axes.texts if text.get_gid() == "marked")
    assert told.xy == (order, pytest.approx(run.rdp(order)))
    assert told.get_text() == f"order {order:.4g} is used"
    low, high = axes.get_ylim()
    assert low < run.rdp(order) < high < run.rdp(4 * order)


def test_names_stand_on_curves_and_do_not_meet() -> None:
    figure = cm.parse("Gaussian(sigma=40) * 7").plot(delta=1e-6, kind="epsilon", title="<my title>")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert axes.get_legend() is None
    assert figure.get_suptitle() == "<my title>"
    assert [text.get_text() for text in axes.texts if text.get_gid() == "label"] == ["Rényi divergences", "the true ε"]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(first.overlaps(second) for i, first in enumerate(boxes) for second in boxes[:i])
    assert axes.collections  # the band
    with pytest.raises(cm.InputError, match="title=3 must be a text"):
        cm.PureDP(1).plot(title=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["epsilon", "rounds", "rdp", "trade-off"])
@pytest.mark.parametrize("run", ["PureDP(1)", "Gaussian(sigma=40) * 7", "PureDP(0.001) * 2", "GaussianDP(mu=30)"])
def test_no_axis_has_a_single_tick(kind: PictureKind, run: str) -> None:
    figure = cm.parse(run).plot(delta=1e-6, kind=kind)
    figure.draw_without_rendering()
    for axes in figure.axes:
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            labels = [tick.label1.get_text() for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            assert sum(map(bool, labels)) > 1


def test_a_run_without_rounds_is_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plot", "PureDP(0.1) + PureDP(0.2) * 2", "--kind", "rounds", "--delta", "1e-6", "--json"]
    assert answer([*arguments, "--out", str(tmp_path / "rounds.png")]) == 0
    rounds = curve(json.loads(capsys.readouterr().out)["charts"], "rounds", "upper")
    assert max(rounds) == 1000
    assert rounds[1.0] == pytest.approx(0.5, rel=1e-3)  # nearly all of pure privacy: delta is small


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--out", "run.gif"), "--out run.gif must end in .png, .svg or .pdf"),
        (("--out", "nowhere/run.png"), "--out nowhere/run.png: there is no directory nowhere"),
        (
            ("--out", "run.png", "--kind", "x"),
            "kind='x' is unknown; choose one of all, epsilon, rounds, rdp, trade-off",
        ),
        (("--out", "run.png", "--delta", "0"), "delta=0 must be a number in (0, 1); delta is a probability"),
        (("--out", "run.png", "--delta", "1"), "delta=1 must be a number in (0, 1); delta is a probability"),
    ],
)
def test_refusals(
    arguments: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert answer(["plot", RUN, *arguments]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"error: {sentence}\n")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert answer(["plot", RUN, "--out", str(tmp_path / "run.png")]) == 1
    assert "pip install 'cumulant[plot]'" in capsys.readouterr().err


def test_the_label_of_the_order_stays_below_the_title() -> None:
    """The order of a pure run lies at the top right, where the label covered the title of its panel."""
    figure = cm.parse("Laplace(scale=20) * 3").plot(delta="1e-5", kind="rdp")
    (axes,) = figure.axes
    figure.canvas.draw()
    (told,) = (text for text in axes.texts if text.get_gid() == "marked")
    assert told.get_window_extent().y1 < axes.get_window_extent().y1


def test_the_used_order_is_marked_on_the_drawn_line() -> None:
    """An order that is no point of the grid was marked off the straight line between its neighbours."""
    from cumulant.domains import Exact
    from cumulant.plotting.charts import by_order

    chart = by_order(cm.RandomizedResponse(p=0.99) * 3, Exact("1e-3"))
    assert chart.marked is not None
    best = dict(zip(chart.curves["best"].x, chart.curves["best"].y, strict=True))
    assert best[chart.marked[0]] == pytest.approx(chart.marked[1], rel=1e-12)


def test_no_band_where_no_lower_end_is_known() -> None:
    """Beyond delta = 0.02 no lower end of these shuffled batches is known: the band fell to the last one, or to 0."""
    from cumulant.domains import Exact
    from cumulant.plotting.charts import by_delta
    from cumulant.plotting.sheet import draw_charts

    run = cm.parse("Gaussian(noise_multiplier=4, relation='replace-one') @ ShuffledBatches(batch=10, records=100) * 2")
    chart = by_delta(run, Exact("1e-5"))
    upper, lower = chart.curves["upper"], chart.curves["lower"]
    assert run.guarantee(delta=upper.x[-1]).lower in (None, 0.0)
    assert lower.x[-1] < upper.x[-1]
    assert (lower.y > 0).all()
    (axes,) = draw_charts([chart], "band").axes
    (band,) = axes.collections
    assert max(float(np.asarray(path.vertices)[:, 0].max()) for path in band.get_paths()) == lower.x[-1]


def test_a_claim_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reviewer wants to see the claim beside the interval; panels without epsilons have none."""
    words = [
        "plot",
        "Gaussian(sigma=4) * 10",
        "--delta",
        "1e-6",
        "--claim",
        "3",
        "--out",
        str(tmp_path / "a.png"),
        "--json",
    ]
    assert answer(words) == 0
    charts = json.loads(capsys.readouterr().out)["charts"]
    assert charts["epsilon"]["curves"]["claim"]["y"] == charts["rounds"]["curves"]["claim"]["y"] == [3.0, 3.0]
    assert "claim" not in charts["rdp"]["curves"]
    assert "claim" not in charts["trade-off"]["curves"]
    figure = cm.PureDP(1).plot(delta="1e-6", kind="epsilon", claim="0.5")
    assert "claimed" in [text.get_text() for text in figure.axes[0].texts]
    with pytest.raises(cm.InputError, match="claim"):
        cm.PureDP(1).plot(claim=-1)
