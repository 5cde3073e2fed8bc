"""What a notebook shows, and how runs and guarantees are printed, added up and put into tables."""

from __future__ import annotations

import ast
from html.parser import HTMLParser
from pathlib import Path

import pytest

import cumulant as cm

RUN = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate="0.001") * 600_000
MASSES = cm.from_masses([1 / 1000] * 1000, [1 / 1000] * 1000)


class _Balanced(HTMLParser):
    """Raises where a tag is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(html: str | None) -> str:
    assert html is not None
    parser = _Balanced()
    parser.feed(html)
    assert parser.open == []
    return " ".join(parser.texts)


def test_a_guarantee_shows_its_interval_and_folds_what_is_assumed() -> None:
    found = RUN.guarantee(delta=1e-8)
    html = found._repr_html_()
    text = read(html)
    assert html is not None
    assert found.lower is not None
    assert text.startswith("epsilon = 0.80")
    assert "<details><summary>What is assumed</summary>" in html
    assert "all parameters were fixed in advance" in text
    assert "aria-label='the true epsilon lies between 0.79" in html
    assert "<script" not in html


@pytest.mark.parametrize(
    "found",
    [
        cm.Gaussian(sigma=1).guarantee(delta=0),
        cm.Gaussian(sigma=1).guarantee(delta=1),
        cm.PureDP(1).guarantee(delta=0),
        cm.Gaussian(sigma=1).guarantee(epsilon=1),
        cm.from_rdp(rdp=lambda order: order / 18, name="<b>mine</b>").guarantee(delta=1e-5),
    ],
    ids=["inf", "one", "pure", "delta", "function"],
)
def test_every_guarantee_is_shown(found: cm.Guarantee) -> None:
    assert found.plan is not None
    read(found._repr_html_())
    assert "<b>mine" not in str(found._repr_html_())


def test_a_run_is_a_table() -> None:
    text = read((RUN + cm.Laplace(scale=20) * 12)._repr_html_())
    assert "600,000" in text
    assert "Laplace(scale=20)" in text


def test_every_answer_is_shown_and_its_text_is_short(tmp_path: Path) -> None:
    run = cm.parse("Gaussian(noise_multiplier=1, relation='add-remove') @ Poisson(rate=1%) * 100")
    account = cm.Ledger(f"sqlite:///{tmp_path}/budget.db").create("<i>", epsilon=1, delta=1e-6, unit="person")
    receipt = account.spend(cm.Gaussian(sigma=20), key="k")
    shown = {
        "The claim is false": run.check(epsilon="0.5", delta=1e-6),
        "The claim holds": run.check(epsilon=1, delta=1e-6),
        "scale = ": cm.calibrate("Laplace(scale=?) * 12", epsilon=1, delta=1e-6),
        "<i>: 0.238 of epsilon 1 is spent": account.status(),
        f"entry 1 of <i> kind spend key k hash {receipt.hash}": receipt,
        "Confirmed by another route": cm.PureDP("1/3").guarantee(delta=0).verify(),
        "DP-SGD: 29 steps, batches of 64 of 1,797 records": cm.NoisySGD(64, 1797, noise_multiplier=4, epochs=1),
        "Privacy loss": run.privacy_loss(),
        "Wang, Balle, Kasiviswanathan 2019, Theorem 9": cm.BOUNDS,
    }
    for headline, answer in shown.items():
        html: str = answer._repr_html_()  # type: ignore[attr-defined]
        assert headline in read(html), headline
        assert "<script" not in html
        assert len(repr(answer)) < 400


def test_a_loop_is_printed_as_it_is_called() -> None:
    for sgd in (
        cm.NoisySGD(64, 1797, noise_multiplier="1.1", epochs=3),
        cm.NoisySGD(64, 1797, noise_multiplier="1/3", schedule=[("1.5", 40), (1, 45)], sampling="poisson"),
        cm.NoisySGD(8, 80, noise_multiplier=1, epochs=2, noise_bands=[1, "0.5"], sampling="fixed-order"),
    ):
        assert rebuilt(repr(sgd)) == sgd


def rebuilt(text: str) -> cm.NoisySGD:
    """The loop of a call that is written as text."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    return cm.NoisySGD(**{word.arg or "": ast.literal_eval(word.value) for word in call.keywords})


def test_reprs_are_short_and_texts_complete() -> None:
    assert len(repr(MASSES)) <= 160
    assert len(repr(MASSES * 3 + cm.PureDP(1))) <= 160
    assert cm.parse(str(MASSES)) == MASSES
    assert len(repr(MASSES.guarantee(delta=0.1))) < 300
    assert repr(RUN) == str(RUN)


def test_formats() -> None:
    found = RUN.guarantee(delta=1e-8, method="paper")
    assert f"{found}" == str(found) == "epsilon = 2.028 at delta = 1e-8"
    assert f"{found:.2}" == "epsilon = 2.1 at delta = 1e-8"  # up
    assert f"{cm.Gaussian(sigma=2).guarantee(epsilon=1, method='paper')}" == "delta = 0.2163 at epsilon = 1"
    assert f"{cm.PureDP(1):>20}" == "   PureDP(epsilon=1)"
    for wrong in ("x", ".0", ".99", "f"):
        with pytest.raises(cm.InputError, match="no format of a guarantee"):
            format(found, wrong)


def test_a_sum_of_runs() -> None:
    parts = [cm.PureDP(1), cm.Laplace(scale=2) * 3, cm.PureDP(1)]
    assert sum(parts) == cm.PureDP(1) * 2 + cm.Laplace(scale=2) * 3
    for wrong in (1, 0.0, False, "x", None):
        with pytest.raises(TypeError):
            wrong + cm.PureDP(1)


def test_rows_of_tables_are_plain() -> None:
    rows = [run.guarantee(delta=1e-6).row() for run in (cm.PureDP(1), RUN)]
    assert rows[0].keys() == rows[1].keys()
    assert all(type(value) in (str, float, type(None)) for row in rows for value in row.values())


def test_all_bounds_by_name() -> None:
    step = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate="0.001")
    every = step.rdp_table([2, 64])
    assert list(every["theorem9"]) == list(step.rdp([2, 64], bound="theorem9"))
    assert "poisson" not in every
    assert step.rdp_table([2])["best"].tolist() == [step.rdp(2)]
