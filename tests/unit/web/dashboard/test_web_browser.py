"""The dashboard in a real browser, also against a server that really leaks."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from browser import NoBrowser, chromium, missing
from floodline._units import format_duration
from floodline.web import make_app, serve
from watched_chat import CULPRIT, watched_chat
from web_states import Shown, beginning, killed, leaking

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.timeout(900),
]

NASTY = "<img src=x onerror=\"document.title='owned'\">"
UNNAMED = """
const named = (e) => e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")
  || e.textContent.trim();
return [...document.querySelectorAll("section, table, [role=img], [role=meter], summary, th")]
  .filter((e) => e.offsetParent !== null && !named(e)).map((e) => e.outerHTML.slice(0, 80));
"""
ANNOUNCED = "return document.getElementById('announce').textContent"
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"
CALM = "return document.getElementById('ended').classList.contains('calm')"
LINK = "return document.getElementById('link').textContent"
WIDTH = "return document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def browser():
    with ExitStack() as open_until_the_end:
        try:
            running = open_until_the_end.enter_context(chromium())
        except NoBrowser as error:
            pytest.skip(f"chromium cannot be started here: {error}")
        yield running


def test_the_culprit_is_on_the_page_while_the_server_leaks(browser, tmp_path):
    with watched_chat(tmp_path / "run.rec", "--line", "512 MiB") as watched:
        browser.size(1280, 900)
        browser.open(watched.url)
        browser.wait_for("live")
        browser.wait_for(CULPRIT, 400)  # it takes about 20 s; a machine under load gets more
        browser.wait_for("leaking_chat.py:")
        page = browser.text()
        for part in ("chats", "replies", "audit", "512 MiB", "running"):
            assert part in page
        watched.end()
        browser.wait_for("How the program ended")
        assert browser.run(LINK) == "ended"
        assert browser.complaints() == []


def test_all_parts_are_named_and_fit_on_a_phone_in_both_themes(browser):
    serving = serve(make_app(Shown(leaking()), token=None), "127.0.0.1", 0)
    try:
        browser.size(1280, 900)
        browser.theme("light")
        browser.open(serving.url)
        browser.wait_for("chat.service.PlanService._sessions")
        assert browser.run("return document.querySelectorAll('#plot canvas').length") == 1
        assert browser.run(UNNAMED) == []
        light = browser.run(BACKGROUND)
        browser.theme("dark")
        assert browser.run(BACKGROUND) != light
        browser.size(360, 740)
        assert browser.run(WIDTH) <= 360
        assert "Bound chat.service.PlanService._sessions: it holds" in browser.text()
        assert "part of chat.service.PlanService._sessions" in browser.text()
        assert "malloc free but held 9 MiB" in browser.text()
        assert "so far: undecided, then growing after 1 min 30 s." in browser.text()
        assert "of 1,000, full in about 1 min 5 s" in browser.text()
        assert "210 of 5,000 items · full in about 2 min 20 s" in browser.text()
        assert browser.complaints() == []
    finally:
        serving.close()


def test_only_a_change_of_the_verdict_is_announced_and_names_stay_text(browser):
    source = Shown(beginning())
    serving = serve(make_app(source, token=None), "127.0.0.1", 0)
    try:
        browser.open(serving.url)
        browser.wait_for("About 42 s more")
        first = browser.run(ANNOUNCED)
        assert first.startswith("Undecided. Too short to tell")
        source.show({**beginning(), "needed": {"seconds": 20.0, "why": "not yet"}})
        browser.wait_for("About 20 s more")
        assert browser.run(ANNOUNCED) == first
        state = leaking()
        state["suspects"][0]["owner"] = state["command"] = state["sessions"][0]["name"] = NASTY
        source.show(state)
        browser.wait_for(NASTY)
        assert browser.run(ANNOUNCED).startswith("Growing. <img")
        assert browser.run("return document.querySelectorAll('main img').length") == 0
        assert "owned" not in browser.run("return document.title")
        ended = {"status": 0, "signal": None, "oom": False, "cause": "exited normally"}
        short = {**beginning(), "closed": True, "exit": ended}
        short["memory"] = {**short["memory"], "rate": 0.0}
        source.show({**short, "now": short["started"] + 9})
        browser.wait_for("How the program ended: exited normally.")
        assert browser.run(CALM)
        assert "too early to tell" in browser.text()
        assert browser.complaints() == []
    finally:
        serving.close()


def test_a_page_comes_back_after_its_server_was_away_and_the_token_leaves_the_address(browser):
    first = serve(make_app(Shown(leaking()), token="secret"), "127.0.0.1", 0)
    browser.open(first.address("secret"))
    browser.wait_for("live")
    assert browser.run("return location.search") == ""
    assert "secret" not in browser.run("return document.cookie")
    first.close()
    browser.wait_for("connection lost, trying again")
    again = serve(make_app(Shown(killed()), token="secret"), "127.0.0.1", first.port)
    try:
        browser.wait_for("killed by the kernel")
        assert not browser.run(CALM)
    finally:
        again.close()


def test_the_page_writes_durations_as_the_report_does(browser):
    lengths = [0.25, 0.1234, 1, 45.67, 59.4, 59.6, 262, 3599.6, 3600, 12600, 86399, 90300, 604800]
    serving = serve(make_app(Shown(leaking()), token=None), "127.0.0.1", 0)
    try:
        browser.open(serving.url)
        browser.wait_for("live")
        script = "return import('/static/words.js').then(({ span }) => arguments[0].map(span))"
        assert browser.run(script, lengths) == [format_duration(length) for length in lengths]
    finally:
        serving.close()
