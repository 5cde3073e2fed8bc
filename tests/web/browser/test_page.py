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
from cumulant.accounting.numbers import rounded_up
from cumulant.web.app import application
from tests.web.server import Client, served

PATIENCE = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    url = f"sqlite:///{tmp_path_factory.mktemp('ledger')}/budget.db"
    account = cm.Ledger(url).create("patients <2026>", epsilon=1, delta=1e-6, like="Gaussian(sigma=20)")
    account.spend("Gaussian(sigma=20)", key="first")
    with served(application(url, "secret")) as client:
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


@pytest.fixture
def page(chromium: Any, server: Client) -> Any:
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chromium.set_window_size(1200, 900)
    chromium.get("about:blank")
    chromium.get(f"{server.address}#run=PureDP(1)&delta=0")
    until(chromium, "return document.querySelectorAll('#charts figure').length === 3")
    return chromium


def until(browser: Any, script: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not browser.execute_script(script):
        assert time.monotonic() < deadline, script
        time.sleep(0.1)


def typed(browser: Any, name: str, text: str) -> None:
    field = browser.find_element(By.ID, name)
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(text)


def numbers(browser: Any) -> list[str]:
    until(browser, "return document.querySelector('#answer .number') || !document.getElementById('problem').hidden")
    return [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#answer .number")]


def asked(browser: Any) -> list[str]:
    browser.execute_script("document.getElementById('answer').replaceChildren()")
    browser.find_element(By.ID, "ask").click()
    return numbers(browser)


def epsilon(run: str, delta: str) -> str:
    return f"epsilon = {rounded_up(cm.parse(run).epsilon(delta))}"


def test_a_run_that_is_typed(page: Any) -> None:
    run = "Gaussian(sigma=2) @ Poisson(rate=1%) * 100"
    typed(page, "run", run)
    typed(page, "delta", "1e-5")
    assert asked(page) == [epsilon(run, "1e-5")]
    assert page.execute_script("return document.activeElement !== null")


def test_a_run_that_is_clicked_together(page: Any) -> None:
    Select(page.find_element(By.ID, "mechanism")).select_by_value("Laplace")
    typed(page, "mechanism-scale", "4")
    Select(page.find_element(By.ID, "sampling")).select_by_value("WithoutReplacement")
    typed(page, "sampling-rate", "10%")
    typed(page, "rounds", "20")
    typed(page, "delta", "1e-6")
    text = page.find_element(By.ID, "run").get_attribute("value")
    assert cm.parse(text) == cm.Laplace(scale=4) @ cm.WithoutReplacement(rate="0.1") * 20
    assert asked(page) == [epsilon(text, "1e-6")]


def test_wrong_input_shows_the_sentence_and_the_place(page: Any) -> None:
    typed(page, "run", "Gaussian(1) + Gausian(2)")
    assert asked(page) == []
    assert "did you mean 'Gaussian'?" in page.find_element(By.ID, "problem").text
    line, caret = page.find_element(By.ID, "place").get_attribute("textContent").splitlines()
    assert line[caret.index("^") :] == "Gausian(2)"


def test_the_address_keeps_the_run(page: Any, server: Client) -> None:
    typed(page, "run", "Laplace(scale=2) * 3")
    typed(page, "delta", "1e-6")
    shown = asked(page)
    address = page.current_url
    page.get("about:blank")
    page.get(address)
    assert numbers(page) == shown == [epsilon("Laplace(scale=2) * 3", "1e-6")]


def test_two_runs_are_compared(page: Any) -> None:
    page.find_element(By.CSS_SELECTOR, "#comparison summary").click()
    typed(page, "other", "PureDP(2)")
    assert asked(page) == ["epsilon = 1", "epsilon = 2"]


def test_calibration(page: Any) -> None:
    Select(page.find_element(By.ID, "mechanism")).select_by_value("PureDP")
    typed(page, "mechanism-epsilon", "0.125")
    Select(page.find_element(By.ID, "sampling")).select_by_value("")
    page.find_element(By.CSS_SELECTOR, "#calibration summary").click()
    Select(page.find_element(By.ID, "unknown")).select_by_value("rounds")
    page.find_element(By.ID, "calibrate").click()
    until(page, "return /Use times/.test(document.getElementById('calibrated').textContent)")
    assert "Use times = 8" in page.find_element(By.ID, "calibrated").text
    assert page.find_element(By.ID, "run").get_attribute("value") == "PureDP(epsilon=0.125) * 8"


# ---- an old answer never stands beside a new question

STRUCK = "return document.getElementById('answer').classList.contains('stale')"
CONTROLS = {
    "mechanism": "Laplace",
    "mechanism-noise_multiplier": "0.5",
    "mechanism-clip": "2",
    "sampling": "WithoutReplacement",
    "sampling-rate": "2%",
    "rounds": "7",
    "delta": "1e-3",
    "run": "PureDP(2)",
    "other": "PureDP(3)",
    "target": "2",
    "unknown": "rounds",
}
"""Every control of the form, and another value for it."""

CALIBRATION = {"target", "unknown"}
"""What only the calibration asks about."""


def changed(browser: Any, name: str, value: str) -> None:
    """By a person: a choice, or keys."""
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    field = browser.find_element(By.ID, name)
    if field.tag_name == "select":
        Select(field).select_by_value(value)
    else:
        typed(browser, name, value)


def line_through(browser: Any, place: str) -> bool:
    script = "return getComputedStyle(document.querySelector(arguments[0])).textDecorationLine === 'line-through'"
    return bool(browser.execute_script(script, place))


def copying(browser: Any) -> bool:
    return bool(browser.execute_script("return [...document.querySelectorAll('[data-copy]')].some((e) => !e.disabled)"))


def said(browser: Any, name: str) -> str:
    return str(browser.find_element(By.ID, name).text)


def test_every_control_is_tried(page: Any) -> None:
    script = "return [...document.querySelectorAll('#question :is(input, select, textarea)')].map((each) => each.id)"
    assert set(page.execute_script(script)) == set(CONTROLS)


@pytest.mark.parametrize("name", sorted(CONTROLS.keys() - CALIBRATION))
def test_any_change_strikes_the_answer_out_at_once(page: Any, name: str) -> None:
    assert not page.execute_script(STRUCK)
    assert copying(page)
    changed(page, name, CONTROLS[name])
    assert page.execute_script(STRUCK)  # no answer of the server is waited for
    assert line_through(page, "#answer .number")
    assert line_through(page, "#charts figcaption")
    assert "ask again" in said(page, "stale")
    assert not copying(page)
    page.find_element(By.ID, "ask").click()
    until(page, f"return !({STRUCK.removeprefix('return ')})")
    assert said(page, "stale") == ""
    until(page, "return document.querySelector('#answer .number') && !document.getElementById('copies').hidden")
    assert not line_through(page, "#answer .number")
    assert copying(page)


def test_the_old_question_has_its_answer_again(page: Any) -> None:
    changed(page, "delta", "1e-3")
    assert page.execute_script(STRUCK)
    changed(page, "delta", "0")
    assert not page.execute_script(STRUCK)
    assert copying(page)


def test_less_noise_does_not_keep_its_epsilon(page: Any, server: Client) -> None:
    """The headline stayed at 1.753 for noise 0.5, which needs 15.48."""
    page.get("about:blank")
    page.get(server.address)
    before = numbers(page)
    changed(page, "mechanism-noise_multiplier", "0.5")
    assert page.execute_script(STRUCK)
    if folder := os.environ.get("SCREENSHOTS"):
        page.set_window_size(1000, page.execute_script("return document.documentElement.scrollHeight") + 140)
        page.save_screenshot(str(Path(folder) / "page-struck.png"))
    run = page.find_element(By.ID, "run").get_attribute("value")
    after = asked(page)
    assert after == [epsilon(run, "1e-6")] != before
    assert not page.execute_script(STRUCK)


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
    changed(page, "run", "PureDP(5)")
    assert page.execute_script(STRUCK)
    page.execute_script(RELEASE)
    assert numbers(page) == ["epsilon = 2"]
    assert page.execute_script(STRUCK)
    assert not copying(page)
    until(page, "return document.querySelectorAll('#charts figure').length === 3")
    assert line_through(page, "#charts figcaption")


def test_a_complaint_about_an_old_run_goes(page: Any) -> None:
    changed(page, "run", "Gausian(2)")
    assert asked(page) == []
    changed(page, "run", "Gaussian(2)")
    assert page.execute_script("return document.getElementById('problem').hidden")
    assert page.execute_script("return document.getElementById('place').hidden")


def fielded(browser: Any) -> None:
    """A calibration that takes no time: how many rounds of PureDP(0.125) meet epsilon 1."""
    changed(browser, "mechanism", "PureDP")
    changed(browser, "mechanism-epsilon", "0.125")
    changed(browser, "sampling", "")
    changed(browser, "unknown", "rounds")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("target", "2"),
        ("unknown", "mechanism-epsilon"),
        ("delta", "1e-3"),
        ("mechanism-epsilon", "0.25"),
        ("rounds", "9"),
    ],
)
def test_a_change_strikes_the_calibration_out(page: Any, name: str, value: str) -> None:
    fielded(page)
    page.find_element(By.ID, "calibrate").click()
    until(page, "return /Use times/.test(document.getElementById('calibrated').textContent)")
    assert not line_through(page, "#calibrated")
    until(page, "return document.querySelector('#answer .number')")
    assert page.execute_script(STRUCK) is False
    changed(page, name, value)
    assert line_through(page, "#calibrated")
    assert page.execute_script(STRUCK) is (name not in CALIBRATION)


def test_a_calibration_that_comes_late_writes_nothing(page: Any) -> None:
    fielded(page)
    page.execute_script(HELD)
    page.find_element(By.ID, "calibrate").click()
    changed(page, "mechanism", "Laplace")
    run = page.find_element(By.ID, "run").get_attribute("value")
    page.execute_script(RELEASE)
    until(page, "return /calibrate again/.test(document.getElementById('calibrated').textContent)")
    assert page.find_element(By.ID, "run").get_attribute("value") == run


def test_a_calibration_is_about_the_run_that_is_shown(page: Any) -> None:
    """A typed run was calibrated as the fields have it, and overwritten."""
    changed(page, "run", "PureDP(0.5) * 3")
    page.find_element(By.ID, "calibrate").click()
    assert "differ" in said(page, "calibrated")
    assert page.find_element(By.ID, "run").get_attribute("value") == "PureDP(0.5) * 3"
    changed(page, "run", "PureDP(0.125) * ?")
    page.find_element(By.ID, "calibrate").click()
    until(page, "return /Use times = 8/.test(document.getElementById('calibrated').textContent)")
    assert page.find_element(By.ID, "run").get_attribute("value") == "PureDP(0.125) * 8"
    assert numbers(page) == ["epsilon = 1"]


def test_another_address_is_another_question(page: Any, server: Client) -> None:
    page.execute_script("location.hash = 'run=PureDP(4)&delta=0'")
    until(page, "return /= 4/.test(document.querySelector('#answer .number')?.textContent)")
    assert not page.execute_script(STRUCK)
    assert copying(page)


def test_the_ledger_shows_what_was_searched_last(page: Any) -> None:
    page.find_element(By.ID, "show-ledger").click()
    until(page, "return document.querySelector('#accounts button')")
    page.find_element(By.CSS_SELECTOR, "#accounts button").click()
    until(page, "return document.querySelectorAll('#history tbody tr').length >= 2")
    page.execute_script(HELD)
    typed(page, "search", "zzz")  # which nothing has
    page.execute_script("window.late = window.held.splice(0); window.fetch = window.real")
    typed(page, "search", "first")
    until(page, "return /^1 of/.test(document.querySelector('#history caption').textContent)")
    page.execute_script("for (const each of window.late) each()")
    time.sleep(0.5)
    assert page.execute_script("return document.querySelector('#history caption').textContent").startswith("1 of")
    page.execute_script("document.getElementById('receipt').textContent = 'Receipt: old'")
    typed(page, "spend-run", "Gaussian(sigma=60)")
    assert said(page, "receipt") == ""


def test_charts_say_their_values_by_pointer_and_by_keys(page: Any) -> None:
    chart = page.find_element(By.CSS_SELECTOR, "#charts svg")
    chart.send_keys(Keys.ARROW_RIGHT)
    caption = page.find_element(By.CSS_SELECTOR, "#charts figcaption").text
    assert ". At 1: upper 1" in caption
    ActionChains(page).move_to_element_with_offset(chart, chart.size["width"] // 3, 0).perform()
    moved = page.find_element(By.CSS_SELECTOR, "#charts figcaption").text
    typed(page, "delta", "1e-6")
    asked(page)
    until(page, "return document.querySelectorAll('#charts figure').length === 3")
    assert len(page.find_elements(By.CSS_SELECTOR, "#charts circle.asked")) == 1  # the delta that was asked about
    assert re.search(r"\. At \d+: upper \d", moved)
    assert moved != caption


@pytest.mark.parametrize("what", ["python", "shell", "statement", "link"])
def test_what_is_copied(page: Any, server: Client, what: str) -> None:
    run = "PureDP(epsilon=1) * 3"
    typed(page, "run", run)
    typed(page, "delta", "0")
    asked(page)
    page.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"origin": server.address.rstrip("/"), "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    until(page, "return !document.getElementById('copies').hidden")
    page.find_element(By.CSS_SELECTOR, f"[data-copy={what}]").click()
    until(page, "return document.getElementById('copied').textContent !== ''")
    assert page.find_element(By.ID, "copied").text == "Copied."
    text = page.execute_async_script(
        "navigator.clipboard.readText().then(arguments[0], (e) => arguments[0](String(e)))"
    )
    guarantee = cm.parse(run).guarantee(delta=0)
    expected = {
        "python": f"import cumulant as cm\n\nrun = cm.parse({run!r})\nprint(run.guarantee(delta='0').explain())\n",
        "shell": f"cumulant epsilon '{run}' --delta 0 --explain",
        "statement": guarantee.explain(),
        "link": page.current_url,
    }
    assert text == expected[what]
    assert "run=PureDP" in page.current_url


def test_the_chooser_offers_what_is_registered(page: Any) -> None:
    from cumulant.mechanisms.mechanism import MECHANISMS
    from cumulant.sampling.scheme import SCHEMES

    chooser = {each: Select(page.find_element(By.ID, each)) for each in ("mechanism", "sampling")}
    values = {name: [each.get_attribute("value") for each in found.options] for name, found in chooser.items()}
    assert set(values["mechanism"]) == {"DP-SGD", *MECHANISMS}
    assert set(values["sampling"]) == {"", *SCHEMES}
    chooser["sampling"].select_by_value("")
    for name in values["mechanism"]:
        chooser["mechanism"].select_by_value(name)
        cm.parse(page.find_element(By.ID, "run").get_attribute("value"))
    for name in values["sampling"]:
        # in which steps a record takes part is a fact about correlated noise alone
        whole_run = name in ("BallsInBins", "CyclicPoisson", "FixedOrder", "MinSep")
        chooser["mechanism"].select_by_value("MatrixMechanism" if whole_run else "PureDP")
        chooser["sampling"].select_by_value(name)
        cm.parse(page.find_element(By.ID, "run").get_attribute("value"))
    chooser["mechanism"].select_by_value("PureDP")
    chooser["sampling"].select_by_value("")
    assert page.find_element(By.ID, "typed").text == ""
    typed(page, "run", "PureDP(3)")
    assert "the fields above say something else" in page.find_element(By.ID, "typed").text
    assert page.find_element(By.ID, "mechanism-about").text.startswith("PureDP: Any epsilon-DP mechanism")


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
    assert {"show-explore", "mechanism", "sampling", "rounds", "delta"} <= set(seen)
    outline = page.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"  # what has the focus is seen
    ActionChains(page).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).send_keys("PureDP(7)").perform()
    page.execute_script("document.getElementById('answer').replaceChildren()")
    ActionChains(page).send_keys(Keys.ENTER).perform()
    assert numbers(page) == ["epsilon = 7"]
    until(page, "return document.querySelectorAll('#charts figure').length === 3")
    for _ in range(40):
        ActionChains(page).send_keys(Keys.TAB).perform()
        if page.execute_script("return document.activeElement.tagName") == "svg":
            break
    ActionChains(page).send_keys(Keys.ARROW_RIGHT).perform()
    assert ". At " in page.find_element(By.CSS_SELECTOR, "#charts figcaption").text


def test_on_paper_the_answer_stands_alone(page: Any) -> None:
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "return [...document.querySelectorAll(arguments[0])].filter((e) => e.getClientRects().length).length"
    try:
        assert page.execute_script(shown, "form, nav, button") == 0
        assert page.execute_script(shown, "#answer .number") == 1
        assert page.execute_script(shown, "#charts svg") == 3
        page.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        assert page.execute_script(shown, "#answer details[open] li") >= 1  # what is assumed is printed
        page.execute_script("window.dispatchEvent(new Event('afterprint'))")
        assert page.execute_script(shown, "#answer details[open] li") == 0
        if folder := os.environ.get("SCREENSHOTS"):
            import base64

            printed = page.execute_cdp_cmd("Page.printToPDF", {})["data"]
            (Path(folder) / "page-print.pdf").write_bytes(base64.b64decode(printed))
            page.save_screenshot(str(Path(folder) / "page-print.png"))
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_page_says_that_its_server_is_gone(chromium: Any) -> None:
    with served(application(workers=None)) as client:
        chromium.get(f"{client.address}#run=PureDP(1)&delta=0")
        assert numbers(chromium) == ["epsilon = 1"]
    chromium.execute_script("document.getElementById('answer').replaceChildren()")
    chromium.find_element(By.ID, "ask").click()
    until(chromium, "return !document.getElementById('problem').hidden")
    assert "is cumulant serve still running?" in chromium.find_element(By.ID, "problem").text


def test_the_ledger(page: Any) -> None:
    page.find_element(By.ID, "show-ledger").click()
    until(page, "return document.querySelector('#accounts h3')")
    assert page.find_element(By.CSS_SELECTOR, "#accounts h3").text == "patients <2026>"
    page.find_element(By.CSS_SELECTOR, "#accounts button").click()
    until(page, "return document.querySelectorAll('#history tbody tr').length === 2")
    typed(page, "search", "first")
    until(page, "return document.querySelectorAll('#history tbody tr').length === 1")
    page.find_element(By.ID, "verify").click()
    until(page, "return /^sound/.test(document.getElementById('verdict').textContent)")
    typed(page, "spend-run", "Gaussian(sigma=50)")
    typed(page, "token", "secret")
    page.find_element(By.CSS_SELECTOR, "#spending button").click()
    until(page, "return /Receipt/.test(document.getElementById('receipt').textContent)")
    typed(page, "spend-run", "PureDP(9)")
    page.find_element(By.CSS_SELECTOR, "#spending button").click()
    until(page, "return /does not fit/.test(document.getElementById('receipt').textContent)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 500])
@pytest.mark.parametrize("view", ["explore", "ledger"])
def test_nothing_serious_for_those_who_see_or_hear_less(page: Any, scheme: str, width: int, view: str) -> None:
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    page.find_element(By.ID, f"show-{view}").click()
    page.set_window_size(width, 900)
    time.sleep(0.5)
    axe = Axe(page)
    axe.inject()
    found = [(each["id"], each["impact"]) for each in axe.run()["violations"]]
    assert [each for each in found if each[1] in ("serious", "critical")] == []
    assert page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    if folder := os.environ.get("SCREENSHOTS"):
        height = page.execute_script("return document.documentElement.scrollHeight")
        page.set_window_size(width, height + 140)
        page.save_screenshot(str(Path(folder) / f"page-{view}-{scheme}-{width}.png"))


def test_nothing_comes_from_elsewhere_and_no_policy_is_broken(page: Any, server: Client) -> None:
    names = page.execute_script("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert names
    assert all(name.startswith((server.address, "data:")) for name in names)
    assert [each for each in page.get_log("browser") if "Content Security" in each["message"]] == []


def test_what_a_new_user_sees_first(page: Any, server: Client) -> None:
    page.set_window_size(1000, 900)
    page.get("about:blank")
    page.get(server.address)
    until(page, "return document.getElementById('charts').dataset.done")
    assert numbers(page) == [epsilon(page.find_element(By.ID, "run").get_attribute("value"), "1e-6")]
    if folder := os.environ.get("SCREENSHOTS"):
        page.set_window_size(1000, page.execute_script("return document.documentElement.scrollHeight") + 140)
        page.save_screenshot(str(Path(folder) / "page.png"))
