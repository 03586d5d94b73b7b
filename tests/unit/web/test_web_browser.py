"""The dashboard in a real browser, against a server that really leaks."""

from __future__ import annotations

import pytest

from browser import chromium, missing
from watched_chat import CULPRIT, watched_chat

NAMES = """
const named = (e) => e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")
  || e.textContent.trim();
return [...document.querySelectorAll("section, table, [role=img], [role=meter], summary, th")]
  .filter((e) => e.offsetParent !== null && !named(e)).map((e) => e.outerHTML.slice(0, 80));
"""


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.timeout(300)
def test_the_culprit_is_on_the_page_while_the_server_leaks(tmp_path):
    with watched_chat(tmp_path / "run.rec", "--line", "512 MiB") as watched, chromium() as browser:
        browser.size(1280, 900)
        browser.open(watched.url)
        browser.wait_for("live")
        browser.wait_for(CULPRIT, 120)  # it takes about 20 s; a machine under load gets more
        browser.wait_for("leaking_chat.py:")
        browser.wait_for("Growing")
        page = browser.text()
        for part in ("chats", "replies", "audit", "512 MiB", "running"):
            assert part in page
        assert (
            browser.run("return document.getElementById('announce').textContent")[:7] == "Growing"
        )
        assert browser.run("return document.querySelectorAll('#plot canvas').length") == 1
        assert browser.run(NAMES) == []

        browser.size(360, 740)
        assert browser.run("return document.documentElement.scrollWidth") <= 360
        light = browser.run("return getComputedStyle(document.body).backgroundColor")
        browser.theme("dark")
        assert browser.run("return getComputedStyle(document.body).backgroundColor") != light

        watched.end()
        browser.wait_for("The end of the program")
        assert browser.run("return document.getElementById('link').textContent") == "ended"
        assert browser.complaints() == []
