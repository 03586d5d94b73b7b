"""What the containers of real applications taught: bots, servers, and how they are written."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Scan
from scan_findings import sureness


def levels(folder: Path, files: dict[str, str]) -> dict[str, str]:
    """The confidence of every finding, by what it is about."""
    for name, code in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(code), encoding="utf-8")
    found = Scan([folder]).report().findings
    return {f.symbol.rpartition(".")[2]: sureness(f) for f in found}


BOT = """
    from web import App
    from {source} import note

    app = App()

    @app.on_message()
    async def greet(message):
        note(message.chat_id, message.text)
"""
MEMORY = """
    chats = {}

    def note(chat_id, text):
        chats[chat_id] = text
"""


def test_a_name_is_followed_through_import_of_everything(tmp_path):
    files = {
        "bot": BOT.format(source="kept"),
        "kept/package": "from .memory import *\nfrom .other import *\n",
        "kept/memory": MEMORY,
        "kept/other": "from .package import *\n",
        "kept/__init__": "from .other import *\n",
    }
    assert levels(tmp_path, files) == {"chats": "certain"}


def test_a_name_behind_import_of_everything_may_come_from_a_third_module(tmp_path):
    files = {
        "bot": BOT.format(source="kept"),
        "memory": MEMORY,
        "middle": "from memory import note\n",
        "kept": "from middle import *\n",
    }
    assert levels(tmp_path, files) == {"chats": "certain"}


def test_a_name_that_nothing_gives_stays_unknown(tmp_path):
    files = {
        "bot": BOT.format(source="kept"),
        "memory": MEMORY,
        "kept": "from elsewhere import *\n",
    }
    assert levels(tmp_path, files) != {"chats": "certain"}


GUARDED = """
    from web import App

    app = App()
    seen = {{}}

    @app.on_message()
    async def greet(message):
        text = message.text
        if {test}:
            return
        seen[message.id] = text
"""


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("len(text) < 3", {"seen": "certain"}),
        ("len(message.text) > 99", {"seen": "certain"}),
        ("len(seen) > 99", {}),
    ],
)
def test_only_the_size_of_the_container_bounds_it(tmp_path, test, told):
    assert levels(tmp_path, {"app": GUARDED.format(test=test)}) == told


def test_the_size_of_a_list_that_is_handed_in_bounds_that_list(tmp_path):
    code = """
        from web import App

        app = App()
        log = []

        def note(lines, text):
            if len(lines) > 99:
                return
            lines.append(text)

        @app.on_message()
        async def greet(message):
            note(log, message.text)
    """
    assert levels(tmp_path, {"app": code}) == {}


HANDLERS = """
    from library import Application, Command

    class Bot:
        def __init__(self):
            self.last = {{}}

        async def prompt(self, update, context):
            self.last[update.chat_id] = update.text

        async def resend(self, update, context):
            update.text = self.last.pop(update.chat_id)

        async def sweep(self):
            self.last.clear()

        def run(self):
            application = Application()
            application.add_handler(Command("chat", self.prompt))
            application.add_handler(Command("again", self.{other}))
"""


def test_a_handler_that_removes_what_it_is_asked_for_does_not_run_by_itself(tmp_path):
    assert "last" in levels(tmp_path, {"bot": HANDLERS.format(other="resend")})


def test_a_callback_that_empties_everything_may_run_by_itself(tmp_path):
    assert levels(tmp_path, {"bot": HANDLERS.format(other="sweep")}) == {}


def test_what_an_inner_function_puts_in_the_outer_one_takes_out(tmp_path):
    code = """
        from web import App, download

        app = App()
        running = {}

        @app.on_message()
        async def fetch(message):
            async def progress(done, total):
                running[message.id] = done / total

            await download(message, progress=progress)
            running.pop(message.id)
    """
    assert levels(tmp_path, {"app": code}) in ({}, {"running": "low"})


NEW_IDS = """
    from uuid import uuid4
    from library import Application, Button

    class Bot:
        def __init__(self):
            self.queries = {}

        async def ask(self, update, context):
            key = str(uuid4())
            self.queries[key] = update.text

        async def pressed(self, update, context):
            self.queries.pop(update.key)

        def run(self):
            application = Application()
            application.add_handler(Button(self.ask))
            application.add_handler(Button(self.pressed))
"""


def test_a_button_that_nobody_presses_leaves_a_new_id_behind(tmp_path):
    assert levels(tmp_path, {"bot": NEW_IDS}) == {"queries": "medium"}


def test_a_removal_that_may_be_skipped_needs_a_holder_or_a_caller_that_is_seen(tmp_path):
    code = """
        from web import App

        app = App()

        @app.on_message()
        async def greet(message):
            return message

        class Thread:
            def __init__(self):
                self.tasks = []

            async def ready(self, task):
                self.tasks.append(task)
                await task
                self.tasks.remove(task)
    """
    assert levels(tmp_path, {"app": code}) == {}


PAGES = """
    from web import App

    app = App()

    class Pages:
        def __init__(self, names):
            self.names = names
            self.languages = ["de", "en"]
            self.cache = {{}}

        def page(self, name, language):
            if name not in self.names:
                return None
            {guard}
            key = (name, language)
            self.cache[key] = name
            return name

    pages = Pages(["help", "about"])

    @app.get("/")
    def page(name, language):
        return pages.page(name, language)
"""


@pytest.mark.parametrize(
    ("guard", "level"),
    [("if language not in self.languages: return None", "low"), ("pass", "certain")],
)
def test_a_key_of_several_parts_is_narrowed_if_each_part_is(tmp_path, guard, level):
    assert levels(tmp_path, {"app": PAGES.format(guard=guard)}) == {"cache": level}


def test_a_package_in_a_plain_folder_is_found_by_a_relative_import(tmp_path):
    files = {
        "cogs/stats": """
            from .tools import formats
            from library import commands

            class Stats(commands.Cog):
                @commands.command()
                async def log(self, ctx):
                    table = formats.Table()
                    table.add(ctx.text)
        """,
        "cogs/tools/__init__": "",
        "cogs/tools/formats": """
            class Table:
                def __init__(self):
                    self.rows = []

                def add(self, row):
                    self.rows.append(list(row))
        """,
    }
    assert levels(tmp_path, files) == {"rows": "low"}


def test_what_start_up_makes_for_itself_is_passing_if_others_do_the_same(tmp_path):
    code = """
        from web import App

        app = App()

        class Buttons:
            def __init__(self):
                self.rows = []

            def add(self, text):
                self.rows.append([text])

        def main():
            buttons = Buttons()
            buttons.add("help")
            app.run(buttons.rows)

        @app.on_message()
        async def menu(message):
            buttons = Buttons()
            buttons.add(message.text)
            return len(buttons.rows)

        if __name__ == "__main__":
            main()
    """
    assert levels(tmp_path, {"app": code}) in ({}, {"rows": "low"})


@pytest.mark.parametrize(("loop", "state"), [("rows.find()", "assumed"), ("rows", "proved")])
def test_an_async_loop_over_what_a_call_returns_may_be_done_soon(tmp_path, loop, state):
    code = f"""
        users = set()

        async def load(rows):
            async for row in {loop}:
                users.add(row.id)
    """
    (tmp_path / "app.py").write_text(dedent(code), encoding="utf-8")
    [found] = Scan([tmp_path]).report().findings
    assert found.proofs[1].state == state
