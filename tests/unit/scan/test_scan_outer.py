"""Who runs a function: frameworks, their objects for an event, loops, and whoever is handed it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Scan


def reported(folder: Path, code: str) -> list[str]:
    (folder / "app.py").write_text(dedent(code), encoding="utf-8")
    findings = Scan([folder]).report().findings
    return [f"{f.rule} {f.symbol} {f.confidence}" for f in findings if f.confidence != "low"]


RUN = {
    "a loop that waits calls": """
        import time
        items = []

        def note(state):
            items.append({"state": state})

        def follow(runner):
            while True:
                if not runner.on:
                    break
                note(runner.state)
                time.sleep(1)
    """,
    "a handler hands to a thread": """
        import asyncio
        items = {}

        def note(name):
            items[name] = object()

        @app.post("/")
        async def enter(name):
            await asyncio.to_thread(note, name)
    """,
    "a handler makes a thread for": """
        from threading import Thread
        items = {}

        class Jobs:
            def start(self, name, text):
                Thread(target=self._run, args=(name, text)).start()

            def _run(self, name, text):
                items[name] = text

        JOBS = Jobs()

        @app.post("/")
        async def enter(name, text):
            JOBS.start(name, text)
    """,
    "an app calls whose class has a framework above it": """
        from web import Router

        class Pages(Router):
            def title(self):
                return 1

        pages = Pages()
        items = {}

        @pages.route("/<name>")
        def enter(name):
            items[name] = object()
    """,
    "an app calls that keeps the request beside": """
        from web import App, request

        app = App()
        items = {}

        @app.route("/")
        def enter():
            note(request.args.get("name"))

        def note(name):
            items[name] = object()
    """,
    "a route reaches through one of a family": """
        class Store:
            def keep(self, name): ...

        class Memory(Store):
            def __init__(self):
                self.items = {}

            def keep(self, name):
                self.items[name] = object()

        class Disk(Store):
            def keep(self, name): ...

        STORE = Memory()

        @app.post("/")
        def enter(name, request):
            request.state.store.keep(name)
    """,
}


@pytest.mark.parametrize("case", RUN)
def test_it_sees_a_function_run_that(case, tmp_path):
    [told] = reported(tmp_path, RUN[case])
    assert told.endswith("items high")


UNSEEN = {
    "an object of the program decorates": """
        class Pages:
            def route(self, path):
                return lambda function: function

        pages = Pages()
        items = {}

        @pages.route("/<name>")
        def enter(name):
            items[name] = object()

        @app.get("/")
        def show(name): ...
    """,
    "an app calls once, without a word of an event": """
        from web import App, request

        app = App()
        items = {}

        @app.on_start
        def enter():
            note(settings.home.get("name"))

        def note(name):
            items[name] = object()

        @app.get("/")
        def show(name):
            return request.args
    """,
    "a signal calls": """
        import signal
        items = {}

        def note(number, frame):
            items[number, frame] = object()

        @app.post("/")
        async def enter(name):
            signal.signal(name, note)
    """,
}


@pytest.mark.parametrize("case", UNSEEN)
def test_it_sees_nobody_run_what(case, tmp_path):
    assert not any(told.endswith("high") for told in reported(tmp_path, UNSEEN[case]))
