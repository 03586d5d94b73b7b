"""Who runs a function: frameworks, their objects for an event, loops, and whoever is handed it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Scan
from scan_findings import sureness


def reported(folder: Path, code: str, *, library: bool = False) -> list[str]:
    (folder / "app.py").write_text(dedent(code), encoding="utf-8")
    findings = Scan([folder], library=library).report().findings
    return [f"{f.rule} {f.symbol} {sureness(f)}" for f in findings if f.confidence != "low"]


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
    "a route reaches through one of a large family": """
        class Store:
            def keep(self, name): ...

        class Memory(Store):
            def __init__(self):
                self.items = {}

            def keep(self, name):
                self.items[name] = object()

        class Disk(Store):
            def keep(self, name): ...

        class Tape(Disk):
            def keep(self, name): ...

        class Cloud(Store):
            def keep(self, name): ...

        STORE = Memory()

        @app.post("/")
        def enter(name, request):
            request.state.store.keep(name)
    """,
    "an app calls that has the request beside, and that only reads it": """
        from web import App, request

        app = App()
        items = {}

        @app.route("/")
        def enter():
            name = request.form["name"]
            items[name] = object()
    """,
    "a server is made with": """
        import asyncio

        class Server:
            def __init__(self):
                self.items = []

            async def serve(self, reader, writer):
                self.items.append(writer)

            async def main(self):
                await asyncio.start_server(self.serve, "localhost", 8000)

        asyncio.run(Server().main())
    """,
    "a class registers by what it has from a framework": """
        from bus import Session
        items = {}

        class Joined(Session):
            def start(self):
                self.subscribe(self.note, "session.on_join")

            def note(self, session):
                items[session["id"]] = session
    """,
    "a handler hands to a framework that tells it more": """
        items = {}

        class Bot:
            async def turn(self, context):
                items[context.user.id] = context

        bot = Bot()

        @app.post("/")
        async def enter(request):
            await adapter.process(request, bot.turn)
    """,
    "a server calls with what it put into the instance": """
        from http.server import BaseHTTPRequestHandler
        items = {}

        class Pages(BaseHTTPRequestHandler):
            def do_GET(self):
                items[self.path] = object()
    """,
}


@pytest.mark.parametrize("case", RUN)
def test_it_sees_a_function_run_that(case, tmp_path):
    [told] = reported(tmp_path, RUN[case])
    assert told.endswith("items certain")


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
    "one of several classes has, which are no family": """
        class Memory:
            def __init__(self):
                self.items = {}

            def keep(self, name):
                self.items[name] = object()

        class Plain: ...

        class Disk(Plain):
            def keep(self, name): ...

        class Tape:
            def keep(self, name): ...

        class Cloud:
            def keep(self, name): ...

        MEMORY = Memory()

        @app.post("/")
        def enter(name, request):
            request.state.store.keep(name)
    """,
    "a property sets": """
        items = {}

        class Page:
            @property
            def title(self):
                return 1

            @title.setter
            def title(self, title):
                items[title] = object()

        @app.get("/")
        def show(name): ...
    """,
    "the program itself calls, for a framework's class": """
        import rpc

        class Chat(rpc.Servicer):
            def __init__(self):
                self.items = {}

            def note(self, request, context):
                self.items[request] = context

        def serve(request):
            rpc.add_to_server(Chat(), request)

        def other(chat: Chat, settings):
            chat.note(settings, 1)

        @app.get("/")
        def show(name): ...
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
    "a pool calls with what it is given": """
        items = {}

        class Jobs:
            def start(self, loop):
                loop.run_in_executor(None, self.note, find_home())

            def note(self, home):
                items[home] = object()

        JOBS = Jobs()

        @app.get("/")
        def show(name): ...
    """,
    "a lifespan is": """
        from web import App
        items = {}

        async def life(app):
            items[app] = object()

        app = App("name", lifespan=life)

        @app.get("/")
        def show(name): ...
    """,
    "an instance was made with": """
        from http.server import BaseHTTPRequestHandler
        items = {}

        class Pages(BaseHTTPRequestHandler):
            def __init__(self, home):
                self.home = home

            def do_GET(self):
                items[self.home] = object()
    """,
    "an event asks a helper about": """
        from web import App, g

        app = App()
        items = {}

        @app.get("/")
        def show(name):
            items[find_language(g.locale)] = name
    """,
    "adds what was not known yet": """
        items = []

        @app.get("/")
        def show(name):
            found = lookup(name)
            if found is None:
                items.append(Note())
    """,
}


@pytest.mark.parametrize("case", UNSEEN)
def test_it_sees_nobody_run_what(case, tmp_path):
    assert not any(told.endswith("certain") for told in reported(tmp_path, UNSEEN[case]))


def test_methods_of_a_framework_s_class_are_for_whoever_gets_the_instance(tmp_path):
    code = """
        import rpc

        class Chat(rpc.Servicer):
            def __init__(self):
                self.rooms = {}
                self.spare = {}

            def Send(self, request, context):
                self.rooms[request.room] = request

            def _send(self, request, context):
                self.spare[request.room] = request

        def serve():
            rpc.add_to_server(Chat(), rpc.server(None))

        serve()
    """
    assert reported(tmp_path, code) == ["FLD101 app.Chat.rooms medium"]


STREAMS = {
    "an object from outside gives messages to a helper": """
        import json
        from bus import Consumer
        items = {}

        def note(message):
            event = json.loads(message.value)
            items[event["id"]] = event

        def main():
            consumer = Consumer("topic")
            for message in consumer:
                note(message)

        main()
    """,
    "an object from outside gives messages": """
        import bus
        items = {}

        def main():
            consumer = bus.Consumer("topic")
            for message in consumer:
                items[message.id] = message

        main()
    """,
    "a socket gives messages to a program that holds on to its state": """
        import web

        class State:
            def __init__(self):
                self.items = {}

        @routes.get("/")
        async def enter(request):
            state = request.app["state"]
            socket = web.Socket()
            async for message in socket:
                state.items[message.data] = request

        def make():
            app = web.App()
            app["state"] = State()
            return app
    """,
}


@pytest.mark.parametrize("case", STREAMS)
def test_a_loop_may_go_on_in_which(case, tmp_path):
    [told] = reported(tmp_path, STREAMS[case])
    assert told.endswith("items medium")


def test_a_loop_over_an_object_of_the_program_ends(tmp_path):
    code = """
        class Pages:
            def __iter__(self):
                yield 1

        items = {}

        def main():
            pages = Pages()
            for page in pages:
                items[page.name] = page

        main()
    """
    assert reported(tmp_path, code) == []


ASKS = {
    "for what one event brings": ('for user_id in request.form.getlist("id"):', "certain"),
    "for all that it has": ("for user_id in request.form.values():", "medium"),
}


@pytest.mark.parametrize("case", ASKS)
def test_a_key_of_a_frameworks_object_is_open_if_a_handler_asks(case, tmp_path):
    asked, level = ASKS[case]
    code = f"""
        from flask import Flask, request
        app = Flask("app")
        names = {{}}

        @app.route("/")
        def enter():
            {asked}
                names[user_id] = object()
    """
    assert reported(tmp_path, code) == [f"FLD101 app.names {level}"]


@pytest.mark.parametrize(("decorator", "once"), [("cache", True), ("never_cache", False)])
def test_only_a_cache_makes_an_instance_once(decorator, once, tmp_path):
    code = f"""
        from views import {decorator}

        class Lines:
            def __init__(self):
                self.items = []

            def read(self, stream):
                while True:
                    self.items.append(stream.read())

        @{decorator}
        def lines():
            made = Lines()
            made.read(open("x"))
            return made
    """
    [finding] = Scan([tmp_path]).report().findings if reported(tmp_path, code) else [None]
    assert (finding is not None and finding.proofs[0].state == "proved") is once


def test_a_map_has_no_method_that_takes_out_a_value(tmp_path):
    code = """
        class Entries:
            def __init__(self):
                self.entries = {}

            def add(self, entry):
                self.entries.setdefault(entry.key, []).append(entry)

            def remove(self, entry):
                self.entries[entry.key].remove(entry)

        class Service:
            def __init__(self):
                self.entries = Entries()

        SERVICE = Service()

        def sweep(service):
            while True:
                for entry in service.old():
                    service.entries.remove(entry)

        @app.get("/")
        def enter(entry):
            SERVICE.entries.add(entry)
    """
    assert reported(tmp_path, code) == ["FLD101 app.Entries.entries certain"]


@pytest.mark.parametrize("library", [True, False])
def test_users_of_a_library_make_types_at_run_time(library, tmp_path):
    code = """
        _types = {}

        class Model:
            def __class_getitem__(cls, params):
                _types[params] = made = type(cls.__name__, (cls,), {})
                return made
    """
    assert bool(reported(tmp_path, code, library=library)) is library
