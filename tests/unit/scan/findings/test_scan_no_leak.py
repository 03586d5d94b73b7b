"""What looks like a leak and is none, or is too little to be shown."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Scan
from scan_findings import sureness


def levels(folder: Path, code: str, *, name: str = "app.py") -> dict[str, str]:
    """The confidence of every finding, by what it is about."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(code), encoding="utf-8")
    found = Scan([folder]).report().findings
    return {f.symbol.rpartition(".")[2]: f.confidence for f in found}


QUIET = {
    "a method that keeps one result": """
        from functools import lru_cache

        class Page:
            @lru_cache(maxsize=1)
            def words(self):
                return 1
    """,
    "one result of the one instance": """
        from functools import cache

        class Settings:
            @cache
            def words(self):
                return 1

        settings = Settings()
    """,
    "a method of members of an enum": """
        from enum import Enum
        from functools import cache

        class Colour(Enum):
            RED = 1

            @cache
            def words(self, size):
                return size
    """,
    "a key that is the own process": """
        import os

        items = {}

        def note(text):
            items[os.getpid()] = Note(text)
    """,
    "a map into which constant keys are merged": """
        items = {}

        def note(text):
            global items
            items |= {"last": text}
    """,
    "a value inside that is trimmed where it grows": """
        import time

        class Errors:
            stamps = {"a": []}

            def count(self):
                bucket = self.stamps["a"]
                bucket.append(time.time())
                self.stamps["a"] = [t for t in bucket if time.time() - t < 60]
    """,
    "a value inside of which the last ones stay": """
        stamps = {"a": []}

        def count(text):
            stamps["a"].append(Note(text))
            stamps["a"] = stamps["a"][-10:]
    """,
    "a copy of what was handed in": """
        import copy

        DEFAULTS = {"a": 1}

        def fill(data, user_id):
            data = copy.deepcopy(data)
            data[user_id] = 1
            return data

        def use(name):
            return fill(DEFAULTS, name)
    """,
    "what is begun anew by the method that also makes it": """
        class Profile:
            def __init__(self):
                self.begin()

            def begin(self):
                self.nodes = []

            def note(self, text):
                self.nodes.append(Note(text))

            def report(self):
                nodes = list(self.nodes)
                self.begin()
                return nodes

            def turn(self, text):
                self.note(text)
                return self.report()

        profile = Profile()
    """,
    "a handler that is taken out in the same function": """
        import logging

        def dump(request):
            handler = logging.StreamHandler()
            logging.root.addHandler(handler)
            try:
                work(request)
            finally:
                logging.root.removeHandler(handler)
    """,
    "a handler that another method takes out": """
        import logging

        class Counts:
            def opened(self, spider):
                self.handler = logging.StreamHandler()
                logging.root.addHandler(self.handler)

            def closed(self, spider):
                logging.root.removeHandler(self.handler)
    """,
    "a handler for a logger whose handlers are cleared before": """
        import logging

        def prefix(name):
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.addHandler(logging.StreamHandler())
    """,
    "a handler for a logger that gets a new list of handlers": """
        import logging

        def prefix(name):
            logger = logging.getLogger(name)
            logger.handlers = []
            logger.addHandler(logging.StreamHandler())
    """,
    "the same handler each time": """
        import logging

        class Gateway:
            def __init__(self):
                self.handler = logging.StreamHandler()

            def note(self, name):
                logging.getLogger(name).addHandler(self.handler)
    """,
}


@pytest.mark.parametrize("code", QUIET.values(), ids=QUIET)
def test_nothing_is_shown_of(tmp_path, code):
    assert set(levels(tmp_path, code).values()) <= {"low"}


LOUD = {
    "a method that keeps all results": (
        "words",
        """
        from functools import lru_cache

        class Page:
            @lru_cache(maxsize=None)
            def words(self, text):
                return 1
        """,
    ),
    "what was handed in, and is another object only sometimes": (
        "ITEMS",
        """
        ITEMS = {"a": 1}

        def fill(data, user_id):
            if data is None:
                data = make()
            data[user_id] = 1
            return data

        def use(user_id):
            return fill(ITEMS, user_id)
        """,
    ),
    "a value inside of which only a copy is trimmed": (
        "stamps",
        """
        stamps = {"a": []}

        def count(text):
            stamps["a"].append(Note(text))
            return stamps["a"][-10:]

        def last(text):
            return count(text)

        @app.get("/")
        def index(request):
            return request
        """,
    ),
    "a handler of its own for each call": (
        "note",
        """
        import logging

        class Gateway:
            def note(self, name):
                self.handler = logging.StreamHandler()
                logging.getLogger(name).addHandler(self.handler)
        """,
    ),
    "a handler that was handed in": (
        "note",
        """
        import logging

        def note(handler):
            logging.root.addHandler(handler)
        """,
    ),
}


@pytest.mark.parametrize(("name", "code"), LOUD.values(), ids=LOUD)
def test_medium_is(tmp_path, name, code):
    assert levels(tmp_path, code) == {name: "medium"}


SHARED_ERROR = """
    from web import App, HTTPError

    app = App()
    MISSING = HTTPError(404)

    {}
    def find(name):
        raise MISSING
"""


def test_who_calls_a_handler_may_drop_the_traceback_of_a_shared_error(tmp_path):
    code = SHARED_ERROR.format('@app.get("/{name}")')
    assert levels(tmp_path, code) == {"MISSING": "medium"}


def test_nobody_is_seen_to_drop_the_traceback_of_a_shared_error(tmp_path):
    assert levels(tmp_path, SHARED_ERROR.format("")) == {"MISSING": "medium"}


def test_a_shared_error_of_a_command_line_is_raised_once(tmp_path):
    code = SHARED_ERROR.format("")
    assert levels(tmp_path, code, name="scripts/mail.py") == {"MISSING": "low"}


@pytest.mark.parametrize(
    ("name", "found"), [("cli/call.py", {}), ("web/call.py", {"ask": "medium"})]
)
def test_a_client_of_a_command_line_serves_one_run(tmp_path, name, found):
    code = """
        from http import Client

        def ask(url):
            client = Client()
            return client.get(url)
    """
    assert levels(tmp_path, code, name=name) == found


WEB = """
    from uuid import uuid4
    from web import App

    app = App()

    @app.get("/")
    def index(request):
        return request
"""

VAGUE = {
    "a list that takes what it is given": """
        hooks = []

        def note(hook):
            hooks.append(hook)
    """,
    "a list of things whose making is not seen": """
        class Notes:
            def __init__(self):
                self.hooks = []

            def note(self, text):
                self.hooks.append(parse(text))
    """,
    "a map whose holder and keys are not known": """
        class Notes:
            def __init__(self):
                self.hooks = {}

            def note(self, name):
                self.hooks[name] = 1
    """,
    "keys from somewhere in a function that nobody is seen to run": """
        hooks = {}

        def note(text):
            hooks[config.name] = text
    """,
    "new things of an instance that is handed on": """
        class Notes:
            def __init__(self):
                self.hooks = []

            def note(self, text):
                self.hooks.append(Note(text))

        def _make():
            send(Notes())
    """,
    "a closure that nobody is seen to run": """
        def make():
            hooks = []

            def note(text):
                hooks.append(Note(text))
            return note
    """,
    "what is noted where something is decorated": """
        hooks = []

        def route(path):
            def decorate(function):
                hooks.append(Route(path, function))
                return function
            return decorate
    """,
    "a function that nobody is seen to call twice": """
        hooks = {}

        def register_hook(name):
            hooks[name] = Hook()
    """,
}


@pytest.mark.parametrize("code", VAGUE.values(), ids=VAGUE)
def test_nothing_is_certain_where_doubts_add_up(tmp_path, code):
    assert set(levels(tmp_path, dedent(WEB) + dedent(code)).values()) <= {"low", "medium"}
    assert Scan([tmp_path]).silence("hooks")


VAGUE_LOOK_UP = """
    from collections import defaultdict

    class Notes:
        def __init__(self):
            self.locks = defaultdict(list)

        def note(self, name):
            return self.locks[name]
"""


def test_a_look_up_is_silent_where_doubts_add_up(tmp_path):
    assert levels(tmp_path, dedent(WEB) + dedent(VAGUE_LOOK_UP)) == {}


ONE_DOUBT = {
    "a map with the ids of whoever calls": """
        hooks = {}

        def note(user_id, text):
            hooks[user_id] = text

        def later(user_id):
            note(user_id, "later")
    """,
    "a list that takes something new": """
        hooks = []

        def note(text):
            hooks.append(Note(text))

        def later(text):
            note(text)
    """,
    "a list that takes a deep copy": """
        import copy

        hooks = []

        def note(text):
            hooks.append(copy.deepcopy(text))

        def later(text):
            note(text)
    """,
}


@pytest.mark.parametrize("code", ONE_DOUBT.values(), ids=ONE_DOUBT)
def test_medium_is_where_one_thing_is_open(tmp_path, code):
    assert levels(tmp_path, dedent(WEB) + dedent(code)) == {"hooks": "medium"}


TWO_DOUBTS = {
    "a key that nothing tells about": """
        hooks = {}

        def note(text, value):
            hooks[text] = value
    """,
    "something new in an instance that nobody is seen to make": """
        class Notes:
            def __init__(self):
                self.hooks = []

            def note(self, text):
                self.hooks.append(Note(text))
    """,
}


@pytest.mark.parametrize("code", TWO_DOUBTS.values(), ids=TWO_DOUBTS)
def test_low_is_where_events_are_seen_but_not_these(tmp_path, code):
    assert levels(tmp_path, dedent(WEB) + dedent(code)) == {"hooks": "low"}


@pytest.mark.parametrize("code", TWO_DOUBTS.values(), ids=TWO_DOUBTS)
def test_what_a_library_does_for_its_callers_stays_medium(tmp_path, code):
    (tmp_path / "app.py").write_text(dedent(WEB) + dedent(code), encoding="utf-8")
    found = Scan([tmp_path], library=True).report().findings
    assert [f.confidence for f in found] == ["medium"]


JOBS = """
    jobs = {{}}

    @app.post("/jobs")
    def start(place, job):
        jobs[{}] = job

    @app.delete("/jobs")
    def forget(place):
        jobs.pop(place, None)
"""


@pytest.mark.parametrize(("key", "sure"), [("uuid4().hex", "certain"), ("place", "medium")])
def test_an_event_does_not_come_for_each_of_ever_new_ids(tmp_path, key, sure):
    (tmp_path / "app.py").write_text(dedent(WEB) + dedent(JOBS.format(key)), encoding="utf-8")
    [found] = Scan([tmp_path]).report().findings
    assert (found.symbol, sureness(found)) == ("app.jobs", sure)


COMMAND = """
    from shell import App

    app = App()
    seen = {}

    @app.default
    def transfer(source):
        for item in load(source).items:
            keep(item)

    def keep(item):
        seen[item.id] = item
"""


@pytest.mark.parametrize(("name", "level"), [("cli/move.py", "low"), ("web/move.py", "medium")])
def test_a_command_is_run_once_though_a_decorator_registers_it(tmp_path, name, level):
    assert levels(tmp_path, COMMAND, name=name) == {"seen": level}


def test_a_command_that_waits_for_more_is_not_done_once(tmp_path):
    code = """
        items = {}

        @app.default
        def serve(source):
            while True:
                items[config.job_id] = source.recv()
    """
    assert levels(tmp_path, code, name="cli/serve.py") == {"items": "medium"}


CLIENT = """
    def ask(url):
        client = Client()
        return client.get(url)
"""
CACHED = """
    from functools import cache

    class Request: ...

    @cache
    def ask(request: Request):
        return 1
"""
CALLED = """
    @app.post("/")
    def answer(request):
        return ask(request)
"""


@pytest.mark.parametrize("code", [CLIENT, CACHED], ids=["a client", "a cache"])
def test_once_handlers_are_shown_it_counts_whether_one_of_them_gets_there(tmp_path, code):
    web = dedent(WEB) + dedent(code)
    assert levels(tmp_path, web) == {"ask": "low"}
    assert levels(tmp_path, web + dedent(CALLED)) == {"ask": "medium"}
    assert levels(tmp_path, code) == {"ask": "medium"}


@pytest.mark.parametrize(("size", "level"), [("64", "low"), ("None", "low")])
def test_a_cache_with_a_size_keeps_the_last_instances_and_no_more(tmp_path, size, level):
    code = f"""
        from functools import lru_cache

        class Page:
            @lru_cache(maxsize={size})
            def words(self, text):
                return 1
    """
    assert levels(tmp_path, dedent(WEB) + dedent(code)) == {"words": level}


def test_a_handler_in_a_function_that_no_event_is_seen_to_reach_ranks_low(tmp_path):
    code = """
        import logging

        def note(request):
            logging.getLogger(request.name).addHandler(logging.FileHandler(request.path))
    """
    assert levels(tmp_path, code) == {"note": "medium"}
    assert levels(tmp_path, dedent(WEB) + dedent(code)) == {"note": "low"}


def test_a_method_that_only_makes_a_container_takes_nothing_out(tmp_path):
    code = """
        class Profile:
            def __init__(self):
                self.begin()

            def begin(self):
                self.nodes = []

            def note(self, text):
                self.nodes.append(Note(text))

        profile = Profile()

        @app.post("/")
        def enter(text):
            profile.note(text)
    """
    assert levels(tmp_path, dedent(WEB) + dedent(code)) == {"nodes": "medium"}
