"""The page in a real Chromium: what is typed and clicked gives the numbers of the library. Run by make test-browser."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_selenium_python import Axe
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

import cumulant as cm
from cumulant.accounting.numbers import percent, rounded_down, rounded_up
from cumulant.ledger import writing
from cumulant.web.app import application
from cumulant.web.workers import Workers
from tests.web.server import Client, served

PATIENCE = 120
"""Seconds after which a page that does not change is a failure; no test waits for them."""

CHEAP = "run=PureDP(1)&delta=0"
"""A question that costs next to nothing."""

LOADERS = ("poisson", "shuffled", "any-order", "balls-in-bins", "fixed-size")
LOOP = {"records": "100", "batch": "10", "epochs": "2", "noise_multiplier": "4"}
"""A training run that is answered at once, in every way to draw batches."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    url = f"sqlite:///{tmp_path_factory.mktemp('ledger')}/budget.db"
    anna = cm.Ledger(url, actor="anna").create("patients <2026>", epsilon=1, delta=1e-6, like="Gaussian(sigma=20)")
    anna.spend("Gaussian(sigma=20)", key="first")
    cm.Ledger(url, actor="ben").account("patients <2026>").spend("Gaussian(sigma=40)", key="second")
    with served(application(url, "secret", Workers(seconds=PATIENCE))) as client:  # a busy machine stops no question
        yield client


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert binary, "these tests need Chromium: apt-get install chromium chromium-driver"
    assert driver, "these tests need Chromium: apt-get install chromium chromium-driver"
    options = webdriver.ChromeOptions()
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(each)
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    yield browser
    browser.quit()


def resized(browser: Any, width: int, height: int = 900) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def opened(browser: Any, server: Client, state: str = CHEAP) -> None:
    browser.get("about:blank")
    browser.get(f"{server.address}#{state}")
    numbers(browser)


@pytest.fixture
def page(chromium: Any, server: Client) -> Any:
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    resized(chromium, 1280)
    opened(chromium, server)
    return chromium


DONE = "return document.getElementById('charts').dataset.done"
"""True once every picture of the answer is drawn."""


def until(browser: Any, script: str, *given: str) -> Any:
    """Return what a script answers, once that is true: read in one step, because the page may draw its parts anew."""
    deadline = time.monotonic() + PATIENCE
    while not (found := browser.execute_script(script, *given)):
        assert time.monotonic() < deadline, (script, browser.find_element(By.TAG_NAME, "main").text)
        time.sleep(0.05)
    return found


def typed(browser: Any, name: str, text: str) -> None:
    field = browser.find_element(By.ID, name)
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(text or Keys.DELETE)


def changed(browser: Any, name: str, value: str) -> None:
    """Change a control as a person does: by a choice, or by keys."""
    browser.execute_script("for (const each of document.querySelectorAll('form details')) each.open = true")
    field = browser.find_element(By.ID, name)
    if field.tag_name == "select":
        Select(field).select_by_value(value)
    elif field.get_attribute("type") == "radio":
        field.click()
    else:
        typed(browser, name, value)


def written(browser: Any) -> str:
    """Return the expression once the page has written it."""
    until(browser, "return !document.getElementById('run').classList.contains('pending')")
    return str(browser.find_element(By.ID, "run").get_attribute("value"))


def value(browser: Any, name: str) -> str:
    return str(browser.find_element(By.ID, name).get_attribute("value"))


def numbers(browser: Any) -> list[str]:
    shown = "#answer .number, .field .error, #problem:not([hidden])"
    texts = "Array.from(document.querySelectorAll('#answer .number'), each => each.innerText.trim())"
    return list(until(browser, f"return document.querySelector('{shown}') && {{texts: {texts}}}")["texts"])


def asked(browser: Any) -> list[str]:
    browser.execute_script("document.getElementById('answer').replaceChildren()")
    browser.find_element(By.ID, "ask").click()
    return numbers(browser)


def epsilon(run: str, delta: str) -> str:
    return f"epsilon = {rounded_up(cm.parse(run).epsilon(delta))}"


def said(browser: Any, name: str) -> str:
    return str(browser.find_element(By.ID, name).text)


def text(browser: Any, place: str) -> str:
    return str(browser.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", place))


def saved(browser: Any, name: str, width: int) -> None:
    """Save a screenshot of the whole page, if SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        resized(browser, width, browser.execute_script("return document.documentElement.scrollHeight") + 10)
        time.sleep(0.3)
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))
        resized(browser, width)


# ---- three starting points


def test_a_training_run_in_every_way_to_draw_batches(page: Any) -> None:
    changed(page, "start-train", "")
    for name, each in LOOP.items():
        changed(page, f"train-{name}", each)
    for sampling in LOADERS:
        changed(page, "train-sampling", sampling)
        sgd = cm.NoisySGD(batch=10, records=100, epochs=2, noise_multiplier=4, sampling=sampling)
        assert cm.parse(written(page)) == sgd.run
    offered = [each.get_attribute("value") for each in Select(page.find_element(By.ID, "train-sampling")).options]
    assert offered == list(LOADERS)
    changed(page, "train-sampling", "poisson")
    changed(page, "delta", "1e-5")
    assert asked(page) == [epsilon(written(page), "1e-5")]
    address = page.current_url
    page.get("about:blank")
    page.get(address)
    numbers(page)
    assert [value(page, f"train-{name}") for name in LOOP] == list(LOOP.values())
    assert said(page, "typed") == ""  # the fields and the expression agree again


def test_statistics_that_are_clicked_together(page: Any) -> None:
    changed(page, "start-publish", "")
    changed(page, "mechanism", "Laplace")
    changed(page, "mechanism-scale", "4")
    changed(page, "mechanism-sensitivity", "2")  # a parameter that has a default
    changed(page, "sampling", "WithoutReplacement")
    changed(page, "sampling-rate", "10%")
    changed(page, "rounds", "20")
    changed(page, "delta", "1e-6")
    run = value(page, "run")
    assert cm.parse(run) == cm.Laplace(scale=4, sensitivity=2) @ cm.WithoutReplacement(rate="0.1") * 20
    assert asked(page) == [epsilon(run, "1e-6")]
    changed(page, "mechanism", "Gaussian")
    changed(page, "mechanism-relation", "replace-one")  # a word is quoted
    assert cm.parse(value(page, "run")).relation == "replace-one"


def test_a_claim_is_reviewed_for_every_way_to_draw_batches(page: Any, server: Client) -> None:
    state = "&".join(f"{name}={each}" for name, each in LOOP.items())
    opened(page, server, f"start=review&claim=0.5&delta=1e-5&sampling=poisson&{state}")
    until(page, DONE)
    table = page.find_elements(By.CSS_SELECTOR, "#loaders tbody tr")
    verdicts = []
    for row, sampling in zip(table, LOADERS, strict=True):
        sgd = cm.NoisySGD(batch=10, records=100, epochs=2, noise_multiplier=4, sampling=sampling)
        found = sgd.check(epsilon="0.5", delta="1e-5")
        cell = row.find_element(By.CSS_SELECTOR, ".verdict").text
        assert cell == found.verdict
        verdicts.append(cell)
        assert rounded_up(found.epsilon) in row.text
    assert len(set(verdicts)) > 1
    assert "ask the authors how batches were drawn" in said(page, "loaders")
    assert said(page, "claim-verdict").startswith(f"The claim {'is ' * (verdicts[0] != 'holds')}{verdicts[0]}")
    assert "claimed 0.5" in text(page, "#answer svg.interval")
    saved(page, "page-review", 1280)
    # any order is false because a secret order is; the expression alone leaves it open
    changed(page, "train-sampling", "any-order")
    changed(page, "claim", "0.1")
    asked(page)
    until(page, DONE)
    any_order = cm.NoisySGD(batch=10, records=100, epochs=2, noise_multiplier=4, sampling="any-order")
    found = any_order.check(epsilon="0.1", delta="1e-5")
    assert (found.verdict, any_order.run.check(epsilon="0.1", delta="1e-5").verdict) == ("false", "open")
    assert found.lower is not None
    least = rounded_down(found.lower)
    assert (
        said(page, "claim-verdict") == f"The claim is false: it needs at least {least}, even if the order was secret."
    )
    changed(page, "run", "PureDP(1)")  # a typed run is reviewed alone
    changed(page, "claim", "2")
    changed(page, "delta", "0")
    asked(page)
    assert said(page, "claim-verdict") == "The claim holds: epsilon 1 is enough at this delta."
    assert not page.find_element(By.ID, "loaders").is_displayed()
    changed(page, "run", "Gaussian(sigma=1)")
    changed(page, "delta", "1e-5")
    asked(page)
    assert said(page, "claim-verdict").startswith("The claim is false: no accountant can report less than 4.37")


def test_a_run_that_is_typed(page: Any) -> None:
    run = "Gaussian(sigma=2) @ Poisson(rate=1%) * 100"
    typed(page, "run", run)
    typed(page, "delta", "1e-5")
    assert "the fields above say something else" in said(page, "typed")
    assert asked(page) == [epsilon(run, "1e-5")]
    guarantee = cm.parse(run).guarantee(delta="1e-5")
    ends = [each.text for each in page.find_elements(By.CSS_SELECTOR, "#answer svg.interval text.end")]
    assert ends[-1] == rounded_up(guarantee.epsilon)
    assert guarantee.lower is not None
    assert float(ends[0]) <= guarantee.lower
    address = page.current_url
    page.get("about:blank")
    page.get(address)
    assert numbers(page) == [epsilon(run, "1e-5")]  # the address keeps the run


def test_errors_stand_beside_their_fields(page: Any) -> None:
    look = """
        const field = document.getElementById(arguments[0]), below = document.getElementById(`${arguments[0]}-error`);
        if (!below) return null;
        const box = field.getBoundingClientRect();
        return {
            invalid: field.getAttribute("aria-invalid"),
            distance: below.getBoundingClientRect().y - box.y,
            height: box.height,
            count: document.querySelectorAll(".error:not([hidden])").length,
            text: below.innerText,
        };
    """

    def error(name: str) -> str:
        found = until(page, look, name)
        assert found["invalid"] == "true"
        assert 0 <= found["distance"] <= found["height"] + 60
        assert found["count"] == 1
        return str(found["text"])

    changed(page, "start-train", "")
    changed(page, "train-batch", "600000")
    assert "must be at most records=50000" in error("train-batch")
    assert value(page, "run") == ""  # no old expression beside new fields
    page.find_element(By.ID, "ask").click()
    assert "must be at most" in error("train-batch")
    changed(page, "start-publish", "")
    for name, wrong in (
        ("mechanism-sigma", "-1"),
        ("rounds", "0"),
        ("delta", "7"),
        ("run", "Gaussian(1) + Gausian(2)"),
    ):
        changed(page, name, wrong)
        page.find_element(By.ID, "ask").click()
        told = error(name)
        assert not page.find_element(By.ID, "result").is_displayed()
        changed(page, name, {"mechanism-sigma": "1", "rounds": "2", "delta": "0.1"}.get(name, "PureDP(1)"))
        assert not page.find_elements(By.CSS_SELECTOR, ".field .error")
        if name == "run":
            assert "Did you mean 'Gaussian'?" in told or "did you mean 'Gaussian'?" in told
    changed(page, "run", "Gaussian(1) + Gausian(2)")
    page.find_element(By.ID, "ask").click()
    error("run")
    line, caret = page.find_element(By.ID, "place").get_attribute("textContent").splitlines()
    assert line[caret.index("^") :] == "Gausian(2)"
    changed(page, "run", "PureDP(1)")
    changed(page, "delta", "0")
    asked(page)
    changed(page, "prior", "2")
    assert "must be" in error("prior")
    changed(page, "prior", "0.1")
    changed(page, "slack", "x")
    assert "is not a number" in error("slack")


def test_two_runs_are_compared_on_one_scale(page: Any) -> None:
    changed(page, "other", "PureDP(2)")
    assert asked(page) == ["epsilon = 1", "epsilon = 2"]
    bars = page.find_elements(By.CSS_SELECTOR, "#answer svg.interval rect.band")
    assert len(bars) == 2
    assert bars[0].rect["x"] + bars[0].rect["width"] < bars[1].rect["x"] + bars[1].rect["width"]
    assert not page.find_elements(By.ID, "mixture")
    until(page, "return document.querySelectorAll('#attack-picture svg.people').length === 2")
    until(page, "return document.querySelector('#chart-epsilon .legend')")
    assert "second run, upper bound" in text(page, "#chart-epsilon .legend")
    changed(page, "run", "PureDP(1) @ Poisson(rate=0.5)")
    changed(page, "other", "PureDP(1) @ WithoutReplacement(rate=0.5)")
    asked(page)
    warning = said(page, "mixture")
    assert "do not compare" in warning
    assert "First run: one record added or removed." in warning
    assert "Second run: one record replaced by another." in warning


def test_the_chooser_offers_what_is_registered(page: Any) -> None:
    from cumulant.mechanisms.mechanism import MECHANISMS
    from cumulant.sampling.scheme import SCHEMES

    changed(page, "start-publish", "")
    chooser = {each: Select(page.find_element(By.ID, each)) for each in ("mechanism", "sampling")}
    values = {name: [each.get_attribute("value") for each in found.options] for name, found in chooser.items()}
    assert set(values["mechanism"]) == MECHANISMS.keys()
    assert set(values["sampling"]) == {"", *SCHEMES}
    assert values["mechanism"][:2] == ["Gaussian", "Laplace"]
    groups = page.find_elements(By.CSS_SELECTOR, "#mechanism optgroup")
    assert [each.get_attribute("label") for each in groups] == ["Common", "All others"]
    choose = (
        "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event('input', {bubbles: true})); return document.getElementById('run').value"
    )
    for name in values["mechanism"]:
        cm.parse(page.execute_script(choose, "mechanism", name))
    for name in values["sampling"]:
        # in which steps a record takes part is a fact about correlated noise alone
        whole_run = name in ("BallsInBins", "CyclicPoisson", "FixedOrder", "MinSep")
        page.execute_script(choose, "mechanism", "MatrixMechanism" if whole_run else "PureDP")
        cm.parse(page.execute_script(choose, "sampling", name))
    page.execute_script(choose, "mechanism", "PureDP")
    page.execute_script(choose, "sampling", "")
    assert said(page, "typed") == ""
    assert said(page, "mechanism-about").startswith("PureDP: Any epsilon-DP mechanism")


# ---- calibration


def fielded(browser: Any) -> None:
    """A calibration that takes no time: how many rounds of PureDP(0.125) meet epsilon 1."""
    changed(browser, "start-publish", "")
    changed(browser, "mechanism", "PureDP")
    changed(browser, "mechanism-epsilon", "0.125")
    changed(browser, "sampling", "")
    changed(browser, "unknown", "rounds")


def test_calibration(page: Any) -> None:
    fielded(page)
    page.find_element(By.ID, "calibrate").click()
    until(page, "return /Use/.test(document.getElementById('calibrated').textContent)")
    assert said(page, "calibrated") == "Use rounds = 8: epsilon is at most 1; 9 fails."
    assert value(page, "run") == "PureDP(epsilon=0.125) * 8"
    changed(page, "run", "PureDP(0.5) * 3")
    page.find_element(By.ID, "calibrate").click()
    until(page, "return /differ/.test(document.getElementById('calibrated').textContent)")
    assert value(page, "run") == "PureDP(0.5) * 3"
    changed(page, "run", "PureDP(0.125) * ?")
    page.find_element(By.ID, "calibrate").click()
    until(page, "return /Use times = 8/.test(document.getElementById('calibrated').textContent)")
    assert value(page, "run") == "PureDP(0.125) * 8"
    assert numbers(page) == ["epsilon = 1"]


def test_the_noise_of_a_training_run_is_found(page: Any) -> None:
    changed(page, "start-train", "")
    for name, each in LOOP.items():
        changed(page, f"train-{name}", each)
    changed(page, "delta", "1e-5")
    changed(page, "target", "2")
    written(page)
    page.find_element(By.ID, "calibrate").click()
    until(page, "return /Use noise multiplier/.test(document.getElementById('calibrated').textContent)")
    noise = value(page, "train-noise_multiplier")
    assert f"Use noise multiplier = {noise}" in said(page, "calibrated")
    run = cm.NoisySGD(batch=10, records=100, epochs=2, noise_multiplier=noise, sampling="poisson").run
    assert cm.parse(written(page)) == run
    assert 1.99 < run.epsilon("1e-5") <= 2


# ---- an old answer never stands beside a new question

STRUCK = "return document.getElementById('result').classList.contains('stale')"
CONTROLS = {
    "train": {
        "train-records": "40000",
        "train-batch": "100",
        "train-epochs": "9",
        "train-noise_multiplier": "2",
        "train-sampling": "fixed-size",
    },
    "publish": {
        "mechanism": "Laplace",
        "mechanism-sigma": "7",
        "mechanism-sensitivity": "2",
        "mechanism-geometry": "ball",
        "mechanism-relation": "add-remove",
        "mechanism-averaged_over": "2",
        "mechanism-squared_sensitivity": "3",
        "mechanism-noise_multiplier": "2",
        "mechanism-clip": "2",
        "mechanism-correlated": "true",
        "sampling": "Poisson",
        "rounds": "7",
        "run": "PureDP(2)",
        "other": "PureDP(3)",
        "delta": "1e-3",
        "start-train": "",
        "start-review": "",
    },
    "review": {"claim": "9"},
}
"""Every control of the question by the starting point at which it is seen, and another value for it."""

CALIBRATION = {"target", "unknown"}
"""What only the calibration asks about."""


def line_through(browser: Any, place: str) -> bool:
    script = "return getComputedStyle(document.querySelector(arguments[0])).textDecorationLine === 'line-through'"
    return bool(browser.execute_script(script, place))


def copying(browser: Any) -> bool:
    return bool(browser.execute_script("return [...document.querySelectorAll('[data-copy]')].some((e) => !e.disabled)"))


def test_any_change_strikes_the_answer_out_at_once(page: Any) -> None:
    """Every control is tried; the old value brings the old answer back, which costs no question."""
    seen = {"start-publish", *CALIBRATION}
    for start, controls in CONTROLS.items():
        changed(page, f"start-{start}", "")
        written(page)  # else the server may write the expression between two keys
        if start != "publish":
            changed(page, "run", "PureDP(1)")
        changed(page, "delta", "0.1")
        asked(page)
        until(page, DONE)
        for name, other in controls.items():
            before, run = value(page, name), written(page)
            assert not page.execute_script(STRUCK), name
            assert copying(page), name
            changed(page, name, other)
            assert page.execute_script(STRUCK), name  # no answer of the server is waited for
            assert line_through(page, "#answer .number"), name
            assert line_through(page, "#chart-epsilon figcaption"), name
            assert line_through(page, "#attack-picture p"), name
            assert "ask again" in said(page, "stale"), name
            assert not copying(page), name
            if name.startswith("start-"):
                changed(page, "start-publish", "")
            else:
                changed(page, name, before)
            if start != "publish":
                written(page)
            if value(page, "run") != run:
                changed(page, "run", run)
            assert not page.execute_script(STRUCK), name
            assert copying(page), name
        seen |= set(controls)
    changed(page, "start-publish", "")
    changed(page, "mechanism", "Gaussian")
    script = "return [...document.querySelectorAll('#question :is(input, select, textarea)')].map((each) => each.id)"
    assert set(page.execute_script(script)) == seen  # no control is forgotten
    changed(page, "delta", "0.01")
    assert page.execute_script(STRUCK)
    saved(page, "page-struck", 1280)
    asked(page)
    assert not page.execute_script(STRUCK)
    assert said(page, "stale") == ""


def test_less_noise_does_not_keep_its_epsilon(page: Any) -> None:
    """The headline stayed at 1.753 for noise 0.5, which needs 15.48."""
    changed(page, "start-train", "")
    for name, each in LOOP.items():
        changed(page, f"train-{name}", each)
    changed(page, "delta", "1e-5")
    before = asked(page)
    changed(page, "train-noise_multiplier", "2")
    page.find_element(By.ID, "ask").click()  # at once, before the server has written the expression
    until(page, f"return !({STRUCK.removeprefix('return ')}) && document.querySelector('#answer .number')")
    after = numbers(page)
    assert after == [epsilon(written(page), "1e-5")] != before
    assert "sigma=2" in value(page, "run")


HELD = """
window.held = [];
const real = window.real || window.fetch;
window.real = real;
window.fetch = (...asked) => new Promise((go, no) => window.held.push(() => real(...asked).then(go, no)));
"""
RELEASE = "window.fetch = window.real; for (const each of window.held.splice(0)) each()"


def test_an_answer_that_comes_late_is_struck_out(page: Any) -> None:
    changed(page, "run", "PureDP(2)")
    page.execute_script(HELD)
    page.find_element(By.ID, "ask").click()
    until(page, "return window.held.length")
    changed(page, "run", "PureDP(5)")
    assert page.execute_script(STRUCK)
    page.execute_script(RELEASE)
    assert numbers(page) == ["epsilon = 2"]
    assert page.execute_script(STRUCK)
    assert not copying(page)


def test_the_attack_and_mu_are_asked_again_by_themselves(page: Any) -> None:
    until(page, DONE)
    for name, other, place in (
        ("attack-kind", "reconstruction", "#attack-picture"),
        ("prior", "0.2", "#attack-picture"),
        ("slack", "1e-3", "#chart-mu .picture"),
    ):
        before = text(page, "#chart-mu figcaption" if name == "slack" else place)
        changed(page, name, other)
        assert "Computing" in text(page, place), name  # the old picture is gone at once
        until(page, f"return !/Computing/.test(document.querySelector('{place}').textContent)")
        assert text(page, "#chart-mu figcaption" if name == "slack" else place) != before, name
    changed(page, "run", "PureDP(3)")
    changed(page, "prior", "0.3")
    time.sleep(0.5)
    assert line_through(page, "#attack-picture p")  # a struck picture is not asked about anew
    assert "20 %" in text(page, "#attack-picture")
    changed(page, "run", "PureDP(1)")  # the old question again, and another prior
    assert not page.execute_script(STRUCK)
    assert "Computing" in text(page, "#attack-picture")
    until(page, "return /30 %/.test(document.getElementById('attack-picture').textContent)")


def test_a_change_strikes_the_calibration_out(page: Any) -> None:
    fielded(page)
    page.find_element(By.ID, "calibrate").click()
    until(page, "return /Use rounds/.test(document.getElementById('calibrated').textContent)")
    until(page, "return document.querySelector('#answer .number')")
    others = {
        "target": "2",
        "unknown": "mechanism-epsilon",
        "delta": "1e-3",
        "mechanism-epsilon": "0.25",
        "rounds": "9",
    }
    assert others.keys() >= CALIBRATION
    for name, other in others.items():
        before = value(page, name)
        assert not line_through(page, "#calibrated"), name
        assert page.execute_script(STRUCK) is False, name
        changed(page, name, other)
        assert line_through(page, "#calibrated"), name
        assert page.execute_script(STRUCK) is (name not in CALIBRATION), name
        changed(page, name, before)


def test_a_calibration_that_comes_late_writes_nothing(page: Any) -> None:
    fielded(page)
    page.execute_script(HELD)
    page.find_element(By.ID, "calibrate").click()
    until(page, "return window.held.length")
    changed(page, "mechanism", "Laplace")
    run = value(page, "run")
    page.execute_script(RELEASE)
    until(page, "return /calibrate again/.test(document.getElementById('calibrated').textContent)")
    assert value(page, "run") == run


def test_another_address_is_another_question(page: Any) -> None:
    page.execute_script("location.hash = 'run=PureDP(4)&delta=0'")
    until(page, "return /= 4/.test(document.querySelector('#answer .number')?.textContent)")
    assert not page.execute_script(STRUCK)
    assert copying(page)


# ---- pictures


def test_attacks_are_shown_in_words_and_dots(page: Any, server: Client) -> None:
    opened(page, server, "run=PureDP(1) @ WithoutReplacement(rate=1)&delta=0")
    until(page, DONE)
    run = cm.parse("PureDP(1) @ WithoutReplacement(rate=1)")
    expected = {
        "membership": run.membership("0.01"),
        "attribute": run.attribute(prior="0.01").success,
        "reidentification": run.reidentification(prior="0.01").success,
        "reconstruction": run.reconstruction(prior="0.01").success,
    }
    for kind, success in expected.items():
        changed(page, "attack-kind", kind)
        until(page, "return document.querySelector('#attack-picture .gained')")
        assert text(page, "#attack-picture .gained") == f"1 % → at most {percent(success)}", kind
        dots = {
            name: len(page.find_elements(By.CSS_SELECTOR, f"svg.people circle.{name}"))
            for name in ("before", "gain", "none")
        }
        assert dots == {"before": 1, "gain": 2, "none": 97}, kind  # 3 of 100, rounded up from 2.7
        caveat = text(page, "#attack-picture .about")
        assert ("must include all side knowledge" in caveat) is (kind != "membership")
    changed(page, "prior", "0.0001")
    until(page, "return /10,000/.test(document.getElementById('attack-picture').textContent)")
    assert "One dot is 10 guesses." in text(page, "#attack-picture")
    fit = cm.parse("PureDP(1)").gaussian_fit(slack="1e-6")
    assert f"mu = {rounded_up(fit.mu)} (at least " in text(page, "#chart-mu figcaption")
    assert "at slack 1e-6" in text(page, "#chart-mu figcaption")
    assert len(page.find_elements(By.CSS_SELECTOR, "#chart-mu svg polygon")) == 2  # two bells
    assert "another record" in text(page, "#chart-mu svg")  # replaced, not left out


def test_charts_have_a_fixed_place_titles_a_legend_and_values(page: Any) -> None:
    names = ("mu", "attack", "epsilon", "rounds")
    script = (
        "return arguments[0].map((name) => document.getElementById(`chart-${name}`).getBoundingClientRect())"
        ".map((box) => [box.x, box.y + scrollY, box.width])"
    )
    until(page, DONE)
    after = page.execute_script(script, names)
    changed(page, "run", "PureDP(2)")
    page.execute_script(HELD)
    page.find_element(By.ID, "ask").click()
    until(page, "return window.held.length")
    assert len(page.find_elements(By.CSS_SELECTOR, "#charts .skeleton")) == 4
    before = page.execute_script(script, names)
    page.execute_script(RELEASE)
    until(page, DONE)
    assert not page.find_elements(By.CSS_SELECTOR, "#result .skeleton")
    drawn = page.execute_script(script, names)
    rows = [[y for _, y, _ in places] for places in (before, drawn)]
    assert [each[0] for each in before] == [each[0] for each in drawn] == [each[0] for each in after]
    assert max(abs(a - b) for a, b in zip(*rows, strict=True)) < 2  # nothing moves when the answer comes
    assert before[0][1] == before[1][1] < before[2][1] == before[3][1]
    for name, across, up in (
        ("attack", "false alarms", "members found"),
        ("epsilon", "delta", "epsilon"),
        ("rounds", "rounds", "epsilon at delta = 1e-8"),
    ):
        titles = [each.text for each in page.find_elements(By.CSS_SELECTOR, f"#chart-{name} text.title")]
        assert titles == [across, up]
        assert page.find_elements(By.CSS_SELECTOR, f"#chart-{name} .legend li")
    chart = page.find_element(By.CSS_SELECTOR, "#chart-rounds svg")
    chart.send_keys(Keys.ARROW_RIGHT)
    assert text(page, "#chart-rounds .values").startswith("at 1, upper bound 2")
    ActionChains(page).move_to_element_with_offset(chart, chart.size["width"] // 4, 0).perform()
    shown = [each.text for each in page.find_elements(By.CSS_SELECTOR, "#chart-rounds .cursor text")]
    assert re.fullmatch(r"at \d+", shown[0])
    rounds = int(shown[0].split()[1])
    assert shown[1] == f"upper bound {rounded_up(float(cm.PureDP(2).epsilon_over([rounds], delta='1e-8')[0]))}"
    assert not page.find_elements(By.CSS_SELECTOR, "#charts circle.asked")  # delta 0 is not on the axis
    changed(page, "delta", "1e-6")
    asked(page)
    until(page, "return document.querySelector('#chart-epsilon circle.asked')")


def test_values_are_rounded_outward(page: Any) -> None:
    for number, up, down in (
        (1.23456, "1.235", "1.234"),
        (0.1, "0.1", "0.1"),
        (123456.7, "1.235e5", "1.234e5"),
        (2e-9, "2e-9", "2e-9"),
    ):
        assert page.execute_script("return Chart.short(arguments[0], 'up')", number) == up
        assert page.execute_script("return Chart.short(arguments[0], 'down')", number) == down


# ---- copies, keys, paper


def test_what_is_copied(page: Any, server: Client) -> None:
    run = "PureDP(epsilon=1) * 3"
    typed(page, "run", run)
    assert asked(page) == ["epsilon = 3"]
    page.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"origin": server.address.rstrip("/"), "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    until(page, "return !document.getElementById('copies').hidden")
    expected = {
        "python": f"import cumulant as cm\n\nrun = cm.parse({run!r})\nprint(run.guarantee(delta='0').explain())\n",
        "shell": f"cumulant epsilon '{run}' --delta 0 --explain",
        "statement": cm.parse(run).guarantee(delta=0).explain(),
        "link": page.current_url,
    }
    for what, copied in expected.items():
        page.execute_script("document.getElementById('copied').textContent = ''")
        page.find_element(By.CSS_SELECTOR, f"[data-copy={what}]").click()
        until(page, "return document.getElementById('copied').textContent !== ''")
        assert said(page, "copied") == "Copied."
        script = "navigator.clipboard.readText().then(arguments[0], (e) => arguments[0](String(e)))"
        assert page.execute_async_script(script) == copied
    assert "run=PureDP" in page.current_url


def test_by_keys_alone(page: Any) -> None:
    """From the top of the page to a new answer and to the values of a chart, without a pointer."""
    seen = []
    page.execute_script("document.activeElement.blur(); window.scrollTo(0, 0)")
    for _ in range(40):
        ActionChains(page).send_keys(Keys.TAB).perform()
        seen.append(page.execute_script("return document.activeElement.id || document.activeElement.tagName"))
        if seen[-1] == "run":
            break
    assert seen[0] == "A"  # the link past the questions
    assert {"show-explore", "start-publish", "mechanism", "sampling", "rounds", "delta"} <= set(seen)
    outline = page.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"  # what has the focus is seen
    ActionChains(page).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).send_keys("PureDP(7)").perform()
    page.execute_script("document.getElementById('answer').replaceChildren()")
    ActionChains(page).send_keys(Keys.ENTER).perform()
    assert numbers(page) == ["epsilon = 7"]
    until(page, DONE)
    for _ in range(40):
        ActionChains(page).send_keys(Keys.TAB).perform()
        if page.execute_script("return document.activeElement.tagName") == "svg":
            break
    ActionChains(page).send_keys(Keys.ARROW_RIGHT).perform()
    assert "members found at most" in text(page, "#chart-attack .values")


def test_on_paper_the_answer_stands_alone(page: Any) -> None:
    until(page, DONE)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "return [...document.querySelectorAll(arguments[0])].filter((e) => e.getClientRects().length).length"
    try:
        assert page.execute_script(shown, "form, nav, button, input, select") == 0
        assert page.execute_script(shown, "#answer .number") == 1
        assert page.execute_script(shown, "#charts svg[role=img]") == 4
        page.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        assert page.execute_script(shown, "#answer details[open] li") >= 1  # what is assumed is printed
        page.execute_script("window.dispatchEvent(new Event('afterprint'))")
        assert page.execute_script(shown, "#answer details[open] li") == 0
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_page_says_that_its_server_is_gone(chromium: Any) -> None:
    with served(application(workers=None)) as client:
        chromium.get(f"{client.address}#{CHEAP}")
        assert numbers(chromium) == ["epsilon = 1"]
    chromium.find_element(By.ID, "ask").click()
    until(chromium, "return !document.getElementById('problem').hidden")
    assert "is cumulant serve still running?" in said(chromium, "problem")


# ---- the ledger


def test_the_ledger(page: Any) -> None:
    page.find_element(By.ID, "show-ledger").click()
    until(page, "return document.querySelector('#accounts h3')")
    assert page.find_element(By.CSS_SELECTOR, "#accounts h3").text == "patients <2026>"
    page.find_element(By.CSS_SELECTOR, "#accounts button").click()
    until(page, "return document.querySelectorAll('#spenders tbody tr').length === 2")
    first, second = (row.text for row in page.find_elements(By.CSS_SELECTOR, "#spenders tbody tr"))
    assert first.startswith("anna")
    assert second.startswith("ben")
    assert "1 × Gaussian(sigma=20)" in first
    assert "1 × Gaussian(sigma=40)" in second
    until(page, "return document.querySelectorAll('#history tbody tr').length === 3")
    page.execute_script(HELD)
    typed(page, "search", "zzz")  # which nothing has
    assert line_through(page, "#history td")  # rows of the old search
    page.execute_script("window.late = window.held.splice(0); window.fetch = window.real")
    typed(page, "search", "first")
    until(page, "return /^1 of/.test(document.querySelector('#history caption').textContent)")
    page.execute_script("for (const each of window.late) each()")
    time.sleep(0.5)
    assert text(page, "#history caption").startswith("1 of")  # what was searched last is shown
    assert not line_through(page, "#history td")
    page.find_element(By.ID, "verify").click()
    until(page, "return /^sound/.test(document.getElementById('verdict').textContent)")
    typed(page, "spend-run", "Gaussian(sigma=50)")
    typed(page, "token", "secret")
    page.find_element(By.CSS_SELECTOR, "#spending button").click()
    until(page, "return /Receipt/.test(document.getElementById('receipt').textContent)")
    until(page, "return document.querySelectorAll('#spenders tbody tr').length === 3")
    typed(page, "spend-run", "PureDP(9)")
    assert said(page, "receipt") == ""  # an old receipt does not stand beside a new run
    page.find_element(By.CSS_SELECTOR, "#spending button").click()
    until(page, "return document.getElementById('receipt').textContent")
    assert "Receipt" not in said(page, "receipt")


def test_accounts_that_are_not_shown_are_counted(page: Any) -> None:
    """A ledger with more than 200 accounts looked as if it had 200."""
    page.execute_script("""
        const real = window.fetch;
        window.fetch = async (...asked) => {
          const answer = await real(...asked);
          return new Response(JSON.stringify({ ...await answer.json(), all: 300 }));
        };
    """)
    page.find_element(By.ID, "show-ledger").click()
    until(page, "return document.querySelector('#accounts > p')")
    assert text(page, "#accounts > p") == "These are the first 1 of 300 accounts. cumulant ledger status shows all."


LOST = """
    const real = window.fetch;
    window.fetch = async (...asked) => {
      const answer = await real(...asked);
      if (asked[0] !== "/api/ledger/spend") return answer;
      window.fetch = real;
      throw new TypeError("lost");
    };
"""
"""Loses the answer to one spend; what the page asks beside it is answered."""


def spend_and_lose(page: Any, run: str) -> int:
    """Spend, lose the answer, and return the number of entries before."""
    page.find_element(By.ID, "show-ledger").click()
    until(page, "return document.querySelector('#accounts button')")
    page.find_element(By.CSS_SELECTOR, "#accounts button").click()
    until(page, "return document.querySelector('#history caption') && document.querySelector('#spenders caption')")
    before: int = page.execute_script("return document.querySelectorAll('#history tbody tr').length")
    typed(page, "spend-run", run)
    typed(page, "token", "secret")
    page.execute_script(LOST)
    page.find_element(By.CSS_SELECTOR, "#spending button").click()
    until(page, "return /nothing is charged twice/.test(document.getElementById('receipt').textContent)")
    return before


def test_a_spend_whose_answer_was_lost_is_charged_once(page: Any) -> None:
    """The form sent no key, so that a click after a lost answer was a second charge."""
    before = spend_and_lose(page, "Gaussian(sigma=80)")
    page.find_element(By.CSS_SELECTOR, "#spending button").click()
    until(page, "return /\"replayed\":true/.test(document.getElementById('receipt').textContent)")
    until(page, f"return document.querySelectorAll('#history tbody tr').length > {before}")
    time.sleep(0.5)
    assert page.execute_script("return document.querySelectorAll('#history tbody tr').length") == before + 1


def test_a_spend_whose_server_was_started_again_is_charged_once(page: Any) -> None:
    """The page said that the key was taken and dropped it, so that the next click was a second charge."""
    before = spend_and_lose(page, "Gaussian(sigma=85)")
    writing._nonce.cache_clear()  # as in another process
    page.find_element(By.CSS_SELECTOR, "#spending button").click()
    until(page, "return /Receipt: /.test(document.getElementById('receipt').textContent)")
    assert re.match(
        r"An earlier click was charged, as entry \d+. Nothing was charged now. Receipt: ", said(page, "receipt")
    )
    until(page, f"return document.querySelectorAll('#history tbody tr').length > {before}")
    time.sleep(0.5)
    assert page.execute_script("return document.querySelectorAll('#history tbody tr').length") == before + 1


def test_a_spend_is_charged_once_and_its_receipt_names_what_was_charged(page: Any) -> None:
    """A second click charged a second time, and a late receipt stood beside another run."""
    page.find_element(By.ID, "show-ledger").click()
    until(page, "return document.querySelector('#accounts button')")
    page.find_element(By.CSS_SELECTOR, "#accounts button").click()
    until(page, "return document.querySelector('#history caption') && document.querySelector('#spenders caption')")
    before = page.execute_script("return document.querySelectorAll('#history tbody tr').length")
    typed(page, "spend-run", "Gaussian(sigma=70)")
    typed(page, "token", "secret")
    page.execute_script(HELD)
    for _ in range(2):
        page.find_element(By.CSS_SELECTOR, "#spending button").click()
    page.execute_script("document.getElementById('spending').requestSubmit()")
    typed(page, "spend-run", "Gaussian(sigma=90)")
    assert said(page, "receipt") == ""
    page.execute_script(RELEASE)
    until(page, "return /Receipt/.test(document.getElementById('receipt').textContent)")
    assert said(page, "receipt").startswith("Answer for Gaussian(sigma=70) in patients <2026>: Receipt: {")
    until(page, f"return document.querySelectorAll('#history tbody tr').length > {before}")
    time.sleep(0.5)
    assert page.execute_script("return document.querySelectorAll('#history tbody tr').length") == before + 1


# ---- sizes, themes, people who see or hear less


def violations(browser: Any) -> list[tuple[str, str]]:
    """Return the rules that axe-core finds broken; AXE_CORE names the axe.min.js of another version (npm pack axe-core)."""
    axe = Axe(browser, os.environ["AXE_CORE"]) if "AXE_CORE" in os.environ else Axe(browser)
    axe.inject()
    return [(each["id"], each["nodes"][0]["html"][:120]) for each in axe.run()["violations"]]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_clean_at_both_sizes_in_both_themes(page: Any, scheme: str, width: int) -> None:
    theme = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", theme)
    until(page, DONE)
    resized(page, width)
    time.sleep(0.4)  # pictures are drawn again
    fits = "return document.documentElement.scrollWidth <= window.innerWidth"
    page.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    assert violations(page) == []
    assert page.execute_script(fits)
    saved(page, f"page-publish-{scheme}-{width}", width)
    changed(page, "start-review", "")
    changed(page, "train-batch", "0")
    until(page, "return document.getElementById('train-batch-error')")
    assert violations(page) == []  # a struck answer and an error
    assert page.execute_script(fits)
    page.find_element(By.ID, "show-ledger").click()
    until(page, "return document.querySelector('#accounts button')")
    page.find_element(By.CSS_SELECTOR, "#accounts button").click()
    until(page, "return document.querySelector('#history td') && document.querySelector('#spenders td')")
    assert violations(page) == []
    assert page.execute_script(fits)
    saved(page, f"page-ledger-{scheme}-{width}", width)


def test_nothing_comes_from_elsewhere_and_no_policy_is_broken(page: Any, server: Client) -> None:
    names = page.execute_script("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert names
    assert all(name.startswith((server.address, "data:")) for name in names)
    assert [each for each in page.get_log("browser") if "Content Security" in each["message"]] == []


def test_what_a_new_user_sees_first(page: Any, server: Client) -> None:
    opened(page, server, "")
    until(page, DONE)
    run = cm.NoisySGD(batch=512, records=50000, epochs=60, noise_multiplier=1, sampling="poisson").run
    assert cm.parse(value(page, "run")) == run
    assert numbers(page) == [epsilon(value(page, "run"), "1e-5")] == ["epsilon = 4.711"]
    for scheme in ("light", "dark"):
        theme = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", theme)
        for width in (1280, 390):
            resized(page, width)
            saved(page, f"page-{scheme}-{width}", width)


def test_a_claim_is_a_line_in_the_charts_of_epsilon(page: Any, server: Client) -> None:
    """The claim stood in the bar alone; panels without an epsilon have none."""
    loop = "&".join(f"{name}={value}" for name, value in LOOP.items())
    opened(page, server, f"start=review&{loop}&sampling=poisson&delta=1e-5&claim=3")
    until(page, DONE)
    named = "return document.querySelector(`#chart-${arguments[0]}`).textContent.includes('claimed')"
    assert [page.execute_script(named, each) for each in ("epsilon", "rounds", "attack")] == [True, True, False]
    opened(page, server)
    until(page, DONE)
    assert not page.execute_script(named, "epsilon")
