"""High is what was seen: an event or a loop, a key that it brings, and nothing that removes."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Scan
from floodline.scan._proofs.removal import Removals
from scan_findings import sureness


def reported(folder: Path, code: str) -> list[str]:
    (folder / "app.py").write_text(dedent(code), encoding="utf-8")
    findings = Scan([folder]).report().findings
    return [f"{f.rule} {f.symbol} {sureness(f)}" for f in findings if f.confidence != "low"]


CERTAIN = {
    "a key that a route is called with": """
        from web import App

        app = App()
        items = {}

        @app.post("/{name}")
        def enter(name, text):
            items[name] = text
    """,
    "a part of the request, through helpers": """
        items = {}

        @router.post("/")
        async def enter(request):
            body = await request.json()
            remember(body["who"], body)

        def remember(who, body):
            keep(who.strip(), body)

        def keep(who, body):
            items[who] = body
    """,
    "a new id for each event": """
        from uuid import uuid4

        items = {}

        def new_id():
            return uuid4().hex

        @app.post("/jobs")
        def start(job):
            items[new_id()] = job
    """,
    "a coroutine that an object of an external class is made with": """
        from telegram.ext import MessageHandler, filters

        items = {}

        async def note(update, context):
            items[update.user.id] = update.text

        def main(app):
            app.add_handler(MessageHandler(filters.TEXT, note))
    """,
    "an object that is attached to an external one": """
        class Service:
            def __init__(self):
                self.items = {}

            def get(self, name):
                return self.items.setdefault(name, [])

        app = App()
        app.state.users = Service()

        @app.post("/{name}")
        def enter(name, request: Request):
            return request.app.state.users.get(name)
    """,
    "an object of the bot that a plugin is given": """
        class Service:
            def __init__(self):
                self.items = {}

            def get(self, name):
                return self.items.setdefault(name, [])

        class Bot(commands.Bot):
            def __init__(self):
                self.users = Service()

        class Plugin:
            def __init__(self, bot):
                self.bot = bot

            @commands.command()
            async def note(self, context, text):
                self.bot.users.get(context.author.id).append(text)

        bot = Bot()
        bot.add_cog(Plugin(bot))
    """,
    "an object under a constant key": """
        class Service:
            def __init__(self):
                self.items = {}

            def get(self, name):
                return self.items.setdefault(name, [])

        app = App()
        app.config["USERS"] = Service()

        @app.post("/{name}")
        def enter(name):
            users = current_app.config["USERS"]
            return users.get(name)
    """,
    "a key that a defaultdict was asked for before": """
        from collections import defaultdict

        counts = defaultdict(Counter)
        items = {}

        @app.post("/{name}")
        def enter(name, text):
            counts[name].print()
            items[name] = text
            del counts[name]
    """,
    "each event in a list": """
        items = []

        @app.post("/notes")
        def note(text):
            items.append(text)
    """,
    "what is made for each event": """
        items = []

        class Note:
            def __init__(self, text):
                self.text = text

        @app.post("/notes")
        def note(text):
            keep(text)

        def keep(text):
            items.append(Note(text))
    """,
    "a coroutine that is registered for an event": """
        items = {}

        class Plugin:
            def __init__(self, bus):
                bus.on("message", self.note)

            async def note(self, message):
                items[message.id] = message
    """,
    "records of the log": """
        import logging

        items = []

        class Keep(logging.Handler):
            def emit(self, record):
                items.append(record)
    """,
    "packets of a socket": """
        import asyncio

        items = {}

        class Peers(asyncio.DatagramProtocol):
            def datagram_received(self, data, address):
                items[address] = data
    """,
    "messages that a loop waits for": """
        items = []

        def serve(inbox):
            while True:
                message = inbox.get()
                if message is None:
                    break
                items.append(message)
    """,
    "what a loop that waits hands on": """
        import time

        items = []

        def measure(read):
            items.append({"at": time.time(), "value": read()})

        def watch(read):
            while True:
                measure(read)
                time.sleep(5)
    """,
    "an instance for each event that registers itself": """
        items = []

        class Call:
            def __init__(self, text):
                items.append(self)

        @app.post("/calls")
        def call(text):
            return Call(text).done
    """,
}


@pytest.mark.parametrize("case", CERTAIN)
def test_it_is_certain_about(case, tmp_path):
    [told] = reported(tmp_path, CERTAIN[case])
    assert re.fullmatch(r"FLD1(01|10) app\.(Service\.)?items certain", told)


UNSURE = {
    "the same where an event is seen elsewhere": """
        items = {}
        seen = set()

        @app.post("/")
        def come(request):
            seen.add(request.kind)
            seen.clear()

        def turns(session_id):
            return items.setdefault(session_id, [])

        def last(session_id):
            return turns(session_id)[-1:]
    """,
    "the same where a loop is seen elsewhere": """
        items = {}

        def turns(session_id):
            return items.setdefault(session_id, [])

        def last(session_id):
            return turns(session_id)[-1:]

        def serve(queue):
            while True:
                handle(queue.get())

        def handle(job):
            job.run()
    """,
    "a public function that nobody is seen to call": """
        items = {}

        def enter(session_id, text):
            items[session_id] = text
    """,
    "a method of an object that lives long": """
        class Store:
            def __init__(self):
                self.items = {}

            def enter(self, session_id, text):
                self.items[session_id] = text

        store = Store()
    """,
    "a register of one's own": """
        class Registry:
            def register(self, function):
                return function

        registry = Registry()
        items = {}

        @registry.register
        def enter(name, text):
            items[name] = text
    """,
    "a decorator of a module": """
        import wrapping

        items = {}

        @wrapping.traced
        def enter(name, text):
            items[name] = text
    """,
    "a key that was there before the event": """
        items = {}

        @app.post("/")
        def enter(text):
            items[lookup(text)] = text
    """,
    "something that was there before, in a list": """
        items = []

        class Part:
            def keep(self):
                items.append(self)

        @app.post("/")
        def enter(text, part: Part):
            part.keep()
    """,
    "a count by name": """
        items = {}

        @app.post("/")
        def enter(name):
            items[name] = items.get(name, 0) + 1
    """,
    "a helper that most call with a text of their own": """
        items = set()

        def warn(user):
            items.add(user)

        def old():
            warn("nobody")

        @app.post("/")
        def enter(name):
            warn(name)
    """,
    "the keys of another map": """
        items = {}

        @app.post("/")
        def enter(settings):
            items.update(settings)
    """,
    "a loop that tries again": """
        import time

        items = []

        def fetch(ask):
            while True:
                try:
                    items.append(ask())
                    return items[0]
                except OSError:
                    time.sleep(1)
    """,
    "a loop that waits for room": """
        import time

        items = []

        def add(item, room):
            while True:
                if not room():
                    time.sleep(1)
                    continue
                items.append(item)
                break
    """,
    "a loop that counts": """
        items = []

        async def ask(pages, client):
            page = 0
            while page < pages:
                items.append(await client.get(page))
                page += 1
    """,
    "the number of a thread": """
        import threading

        items = {}

        def here():
            return threading.get_ident()

        @app.post("/")
        def enter(text):
            thread_id = here()
            items[thread_id] = text
    """,
    "a map that somebody else has too": """
        items = {}

        @app.post("/")
        def enter(name, text):
            items[name] = text

        def everything():
            return items
    """,
    "a removal that a request asks for": """
        items = {}

        @app.post("/{place}")
        def enter(place, text):
            items[place] = text

        @app.delete("/{place}")
        def leave(place):
            items.pop(place, None)
    """,
    "a removal that nobody is seen to call": """
        items = {}

        @app.post("/{name}")
        def enter(name, text):
            items[name] = text

        def _forget(name):
            items.pop(name, None)
    """,
}


@pytest.mark.parametrize("case", UNSURE)
def test_it_is_not_certain_about(case, tmp_path):
    [told] = reported(tmp_path, UNSURE[case])
    assert told.endswith("items medium")


TWO = """
    class Service:
        def __init__(self):
            self.items = {}

        def get(self, name):
            return self.items.setdefault(name, [])

    class Other:
        def get(self, name):
            return name

    app = App()
    app.config["USERS"] = Service()
    app.config["USERS"] = Other()

    @app.post("/{name}")
    def enter(name):
        return current_app.config["USERS"].get(name)
"""


def test_a_constant_key_of_two_classes_says_nothing(tmp_path):
    assert reported(tmp_path, TWO) == []


CHAINED = """
    class Chat:
        def __init__(self):
            self.items = []

    class Chats:
        def __init__(self):
            self._chats = {}

        def get(self, name):
            chat = self._chats.get(name)
            if chat is None:
                chat = self._chats[name] = Chat()
            return chat

    chats = Chats()

    @app.post("/{name}")
    def enter(name, text):
        chat = chats.get(name)
        chat.items.append(text)
"""


def test_a_chained_assignment_keeps_in_all_its_targets(tmp_path):
    assert "FLD101 app.Chat.items medium" in reported(tmp_path, CHAINED)


CLOSED = {
    "a route for one of a few": "kind: Literal['a', 'b']",
    "a route for a type": "kind: type",
    "a route for a function": "kind: Callable[[], None]",
    "a route for a flag": "kind: bool",
}


@pytest.mark.parametrize("case", CLOSED)
def test_it_is_silent_about(case, tmp_path):
    code = f"""
        items = {{}}

        @app.post("/")
        def enter({CLOSED[case]}, text):
            items[kind] = text
    """
    assert reported(tmp_path, code) == []


def test_a_cached_method_of_what_is_made_for_each_event_is_certain(tmp_path):
    code = """
        from functools import cache

        class Page:
            @cache
            def words(self):
                return 1

        @app.get("/")
        def show(text):
            return Page().words()
    """
    assert reported(tmp_path, code) == ["FLD301 app.Page.words certain"]


def test_a_local_ends_with_the_function_that_an_error_leaves(tmp_path):
    code = """
        async def serve(queue, socket):
            waiting = {}
            while True:
                job = await queue.get()
                waiting[job.id] = job
                await socket.send(job)
                waiting.pop(job.id)
    """
    assert reported(tmp_path, code) == ["FLD109 app.serve()waiting medium"]


def test_what_grows_in_many_places_is_judged_once(tmp_path, monkeypatch):
    judged = []
    judge = Removals.judge

    def noted(self, held, depth, growing):
        judged.append(len(growing))
        return judge(self, held, depth, growing)

    monkeypatch.setattr(Removals, "judge", noted)
    code = "import threading\nitems = {}\n"
    code += "".join(f"def put{n}(key):\n    items[key] = {n}\n" for n in range(40))
    code += "def sweep():\n    while True:\n        items.clear()\n"
    code += "threading.Thread(target=sweep).start()\n"
    assert reported(tmp_path, code) == []
    assert judged == [40]
