"""What runs a function without calling it: timers, tables of methods, names, frameworks."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from floodline.scan import Finding, Scan


@pytest.fixture
def scanned(tmp_path) -> Callable[..., dict[str, Finding]]:
    def scan(code: str, path: str = "app.py") -> dict[str, Finding]:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(dedent(code), encoding="utf-8")
        findings = Scan([tmp_path]).report().findings
        return {f.symbol.rpartition(".")[2]: f for f in findings}

    return scan


TIMERS = """
    import threading, time
    from flask import Flask, request

    app = Flask(__name__)

    class Cache:
        def __init__(self):
            self.swept = {}
            self.left = {}
            self.samples = []

        def put(self, user_id):
            self.swept[user_id] = 1
            self.left[user_id] = 1
            threading.Timer(60, self.close).start()

        def close(self):
            self.swept.clear()

        def stop(self):
            self.left.clear()

        def _sample(self):
            self.samples.append(time.time())
            threading.Timer(1, self._sample).start()

    cache = Cache()

    @app.post("/")
    def enter():
        cache.put(request.json["user"])
    """


def test_a_timer_runs_what_it_is_given_even_if_that_is_called_close(scanned):
    found = scanned(TIMERS)
    assert "swept" not in found
    assert found["left"].rule == "FLD102"


def test_what_hands_itself_to_a_timer_runs_again_and_again(scanned):
    assert "a timer runs _sample()" in scanned(TIMERS)["samples"].proofs[1].claim


COGS = """
    from discord.ext import commands

    bot = commands.Bot("!")

    class Music(commands.Cog):
        def __init__(self, bot):
            self.queue = {}

        @commands.command()
        async def play(self, ctx, url):
            self.queue[ctx.message.id] = url

        @commands.command()
        async def reset(self, ctx):
            self.queue.clear()

    def setup(bot):
        bot.add_cog(Music(bot))
    """


def test_a_command_of_a_bot_is_an_event_and_its_class_is_kept_by_the_bot(scanned):
    finding = scanned(COGS)["queue"]
    assert (finding.rule, finding.confidence) == ("FLD102", "medium")
    assert "Music is passed to what calls it" in finding.proofs[0].claim
    assert "reset() runs only when its event arrives" in finding.proofs[3].claim


DISPATCH = """
    class Server:
        def __init__(self):
            self.users = {{}}
            self.notes = {{}}
            {table}

        async def run(self, reader):
            while True:
                verb, rest = await reader.read()
                {call}(rest)

        def do_join(self, user_id):
            self.users[user_id] = 1

        def do_part(self, user_id):
            self.users.pop(user_id, None)

        def do_note(self, note_id):
            self.notes[note_id] = 1

    server = Server()
    """
TABLE = 'self.verbs = {"join": self.do_join, "part": self.do_part, "note": self.do_note}'


@pytest.mark.parametrize(
    ("table", "call"),
    [
        (TABLE, "self.verbs[verb]"),
        ("pass", 'getattr(self, f"do_{verb}")'),
        ("pass", 'getattr(self, "do_" + verb)'),
        ("pass", 'getattr(self, "do_%s" % verb)'),
    ],
)
def test_a_method_that_is_found_in_a_table_or_by_its_name_has_a_caller(scanned, table, call):
    found = scanned(DISPATCH.format(table=table, call=call))
    assert found["notes"].confidence == "medium"
    assert "its caller is unknown" in found["notes"].proofs[1].claim
    assert found["users"].confidence == "low"  # who joins can leave: both are equally unseen
    assert "do_part() runs only when its event arrives" in found["users"].proofs[3].claim


@pytest.mark.parametrize("call", ["getattr(self, verb)", 'getattr(rest, f"do_{verb}")'])
def test_a_name_that_may_be_any_means_none_in_particular(scanned, call):
    found = scanned(DISPATCH.format(table="pass", call=call))
    assert "no caller found" in found["notes"].proofs[1].claim


def test_what_a_script_keeps_no_server_keeps(scanned):
    code = """
        class Store:
            def __init__(self):
                self.rows = {}

            def put(self, row_id, row):
                self.rows[row_id] = row
        """
    scanned(code, "core.py")
    found = scanned("from core import Store\nstore = Store()\n", "scripts/demo.py")
    assert "created when the file runs as a program" in found["rows"].proofs[0].claim


GUARDED = """
    from fastapi import FastAPI

    app = FastAPI()
    KNOWN = {{"a": 1}}

    class Book:
        def __init__(self, names):
            self.pages, self.hits = {{}}, {{}}
            for name in names:
                self.pages[name] = 0

        def open(self, key):
            {guard}
            self.{grows}[key] = 1

    book = Book(["a"])

    @app.get("/")
    async def get(key: str):
        book.open(key)
    """


@pytest.mark.parametrize(
    ("guard", "grows"),
    [
        ("if key not in self.pages: return", "hits"),
        ("if self.pages.get(key) is None: return", "pages"),
        ("if not self.pages.get(key): return", "pages"),
        ("if (page := self.pages.get(key)) is None: return", "pages"),
        ("page = self.pages.get(key)\n            if not page: return", "pages"),
        ("if key not in KNOWN: raise KeyError(key)", "hits"),
    ],
)
def test_keys_of_a_fixed_table_and_keys_that_exist_are_not_open(scanned, guard, grows):
    assert not scanned(GUARDED.format(guard=guard, grows=grows))


@pytest.mark.parametrize(
    "guard",
    [
        "if self.pages.get(key, 1) is None: return",  # it has a default
        "if key is None: return",
        "if not other(key): return",
        "page = self.pages.get(key)\n            page = key\n            if not page: return",
    ],
)
def test_other_checks_leave_the_keys_open(scanned, guard):
    assert set(scanned(GUARDED.format(guard=guard, grows="pages"))) == {"pages"}
