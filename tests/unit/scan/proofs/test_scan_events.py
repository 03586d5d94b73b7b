"""Endless loops keep what they use; a removal that waits for one event is no way out."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Scan
from scan_findings import sureness


def reported(folder: Path, code: str, **others: str) -> list[str]:
    for name, text in {"app": code, **others}.items():
        (folder / f"{name}.py").write_text(dedent(text), encoding="utf-8")
    findings = Scan([folder]).report().findings
    return [f"{f.rule} {f.symbol} {sureness(f)}" for f in findings if f.confidence != "low"]


FOUND = {
    "a local of an endless loop": (
        """
        async def consume(queue):
            seen = {}
            while True:
                message = await queue.get()
                seen[message.id] = message
        """,
        "FLD101 app.consume()seen certain",
    ),
    "an instance that an endless loop uses": (
        """
        class Window:
            def __init__(self):
                self.lines = []

            def show(self, line):
                self.lines.append(line)

        def follow(source):
            window = Window()
            while True:
                for line in source:
                    if not line:
                        break
                    window.show(line)
        """,
        "FLD101 app.Window.lines medium",
    ),
    "a removal in the arm of another event, through a call": (
        """
        sessions = {}

        def remember(session_id):
            sessions[session_id] = 1

        def forget(session_id):
            sessions.pop(session_id, None)

        def on_event(event):
            if event.type == "session.updated":
                remember(event.session_id)
            elif event.type == "session.deleted":
                forget(event.session_id)
        """,
        "FLD102 app.sessions medium",
    ),
    "a removal in the case of another event, in another function": (
        """
        sessions = {}

        def message(session_id):
            sessions[session_id] = 1

        def notice(event):
            match event.kind:
                case "created":
                    pass
                case "deleted":
                    sessions.pop(event.session_id, None)
        """,
        "FLD102 app.sessions medium",
    ),
    "a removal that somebody has to ask for": (
        """
        class Handler(Base):
            sessions = {}

            def do_POST(self):
                self.sessions[self.session_id] = 1

            def do_DELETE(self):
                self.sessions.pop(self.session_id, None)

            def close_all(self):
                self.sessions.clear()
        """,
        "FLD102 app.Handler.sessions medium",
    ),
    "values of a map that lives long": (
        """
        class Session:
            def __init__(self):
                self.history = []

            def note(self, text):
                self.history.append(Note(text))

        sessions = {}

        def session_of(user_id):
            session = sessions.get(user_id)
            if session is None:
                if len(sessions) > 100:
                    sessions.clear()
                session = Session()
                sessions[user_id] = session
            return session

        def handle(user_id, text):
            session_of(user_id).note(text)
        """,
        "FLD101 app.Session.history medium",
    ),
    "a key that a nested map inserts": (
        """
        from collections import defaultdict

        tools = defaultdict(set)

        def called(session_id, kind):
            tools[session_id].add(kind)
        """,
        "FLD101 app.tools medium",
    ),
    "the only instance of a class": (
        """
        class Registry:
            _only = None

            def __new__(cls):
                if cls._only is None:
                    cls._only = super().__new__(cls)
                    cls._only.users = {}
                return cls._only

            def login(self, user_id):
                self.users[user_id] = 1

        def handle(user_id):
            Registry().login(user_id)
        """,
        "FLD101 app.Registry.users medium",
    ),
    "locks that reading a map makes": (
        """
        import threading
        from collections import defaultdict

        locks = defaultdict(threading.Lock)

        def handle(session_id, work):
            with locks[session_id]:
                work()
        """,
        "FLD106 app.locks medium",
    ),
    "one of several methods that take the same": (
        """
        class One:
            items = []

            def collect(self, x):
                self.items.append(x)

        class Two:
            def collect(self, x):
                self._note(x)

            def _note(self, x):
                print(x)

        def handle(thing, x):
            thing.collect(x)
        """,
        "FLD101 app.One.items medium",
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_growth_is_found_in(case, tmp_path):
    code, wanted = FOUND[case]
    assert reported(tmp_path, code) == [wanted]


CLEAN = {
    "a loop that an error ends": """
        def drain(queue):
            items = []
            try:
                while True:
                    items.append(queue.get_nowait())
            except Empty:
                return items
    """,
    "a loop that ends": """
        def read(stream):
            lines = []
            while True:
                line = stream.readline()
                if not line:
                    break
                lines.append(line)
    """,
    "a loop from which a loop inside it returns": """
        def read(stream):
            lines = []
            while True:
                for line in stream:
                    if not line:
                        return
                    lines.append(line)
    """,
    "a generator, which waits to be asked": """
        def numbers():
            seen = []
            while True:
                seen.append(1)
                yield seen
    """,
    "what is made anew in each turn": """
        def consume(queue):
            while True:
                batch = []
                for item in queue.get():
                    batch.append(item)
    """,
    "a removal in the same arm": """
        sessions = {}

        def remember(session_id):
            sessions[session_id] = 1

        def forget(session_id):
            sessions.pop(session_id, None)

        def on_event(event):
            if event.type == "session.updated":
                remember(event.session_id)
                forget(event.session_id)
    """,
    "a removal that another caller reaches without asking": """
        sessions = {}

        def remember(session_id):
            sessions[session_id] = 1

        def forget(session_id):
            sessions.pop(session_id, None)

        def on_event(event):
            if event.type == "session.updated":
                remember(event.session_id)
            elif event.type == "session.deleted":
                forget(event.session_id)

        def handle(session_id, work):
            remember(session_id)
            work()
            forget(session_id)
    """,
    "a choice that is no choice between events": """
        import os

        cache = {}

        def keep(user_id):
            cache[user_id] = 1

        def trim():
            if os.name == "nt":
                cache.clear()

        def turn(user_id):
            keep(user_id)
            trim()
    """,
    "a choice that a caller makes": """
        cache = {}

        def keep(user_id):
            cache[user_id] = 1

        def trim(mode):
            if mode == "reset":
                cache.clear()

        def turn(user_id, mode):
            keep(user_id)
            trim(mode)
    """,
    "values of a map that passes": """
        class Entry:
            def __init__(self):
                self.parts = []

            def add(self, part):
                self.parts.append(part)

        def parse(tokens):
            found = {}
            for token in tokens:
                entry = Entry()
                found[token] = entry
                entry.add(token)
    """,
}


@pytest.mark.parametrize("case", CLEAN)
def test_nothing_is_said_about(case, tmp_path):
    assert reported(tmp_path, CLEAN[case]) == []


def test_a_container_on_an_object_of_the_module_is_one_container(tmp_path):
    users = """
        from app import application

        def forget(user_id):
            application.state.users.pop(user_id, None)

        def handle(user_id):
            application.state.users[user_id] = 1
            forget(user_id)
    """
    app = """
        application = Framework()
        application.state.users = {}
        application.state.rooms = {}

        @application.post("/enter")
        def enter(user_id):
            application.state.rooms[user_id] = 1

        def setup(other):
            other.users = {}
    """
    assert reported(tmp_path, app, users=users) == ["FLD101 app.application.state.rooms certain"]
