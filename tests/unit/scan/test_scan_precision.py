"""What real code taught: shapes that looked like leaks and were none."""

from __future__ import annotations

from textwrap import dedent

import pytest

from floodline.scan import Scan


def reported(folder, code: str) -> list[str]:
    (folder / "app.py").write_text(dedent(code), encoding="utf-8")
    findings = Scan([folder]).report().findings
    return [f"{f.rule} {f.symbol} {f.confidence}" for f in findings if f.confidence != "low"]


TABLE = """
    class Table:
        def __init__(self):
            self.rows = []

        def row(self, values):
            self.rows.append(values)

    def show(values):
        table = Table()
        table.row(values)
        return str(table)
"""


def test_a_class_of_which_some_instances_pass_is_not_certain(tmp_path):
    assert reported(tmp_path, TABLE) == []
    assert reported(tmp_path, TABLE + "\n    table = Table()\n") == []
    [finding] = Scan([tmp_path]).report().findings
    assert "but other instances are not kept" in finding.proofs[0].claim


def test_what_is_made_where_the_file_runs_as_a_program_is_not_certain(tmp_path):
    code = """
        class Log:
            def __init__(self):
                self.lines = []

            def write(self, line):
                self.lines.append(line)

        if __name__ == "__main__":
            log = Log()
            log.write("started")
    """
    assert reported(tmp_path, code) == []
    (tmp_path / "other.py").write_text(
        "from app import Log\n\ndef f(log: Log):\n    log.write(1)\n"
    )
    assert reported(tmp_path, code) == []
    [finding] = Scan([tmp_path]).report().findings
    assert "is created when the file runs as a program" in finding.proofs[0].claim


@pytest.mark.parametrize(
    ("begins", "ends"),
    [("__enter__", "__exit__"), ("start", "stop"), ("connect", "disconnect"), ("open", "close")],
)
def test_what_begins_and_ends_together_is_a_pair(tmp_path, begins, ends):
    code = f"""
        class Timer:
            def __init__(self):
                self.stack = []

            def {begins}(self):
                self.stack.append(1)

            def {ends}(self, *error):
                self.stack.pop()

        timer = Timer()
    """
    assert reported(tmp_path, code) == []


def test_a_decorator_factory_fills_its_table_where_functions_are_defined(tmp_path):
    code = """
        table = {}

        def special(name):
            def wrapper(function):
                table[name] = function
                return function
            return wrapper

        @special("len")
        def f(): ...
    """
    assert reported(tmp_path, code) == []


def test_a_function_that_calls_its_inner_one_keeps_nothing(tmp_path):
    code = """
        def numbered(names):
            seen = []

            def number(name):
                seen.append(name)
                return len(seen)

            return {name: number(name) for name in names}
    """
    assert reported(tmp_path, code) == []


def test_a_handler_that_adds_and_removes_through_helpers_is_a_pair(tmp_path):
    code = """
        members = {}

        def enter_room(user_id):
            members[user_id] = True

        def leave_room(user_id):
            members.pop(user_id, None)

        @app.websocket("/room")
        async def room(user_id, socket):
            enter_room(user_id)
            try:
                await socket.receive()
            finally:
                leave_room(user_id)
    """
    assert reported(tmp_path, code) == []


def test_what_the_main_loop_calls_runs(tmp_path):
    code = """
        waiting = {}

        @bot.event
        def on_message(message_id):
            waiting[message_id] = True

        def work():
            waiting.popitem()

        def main():
            while True:
                work()

        main()
    """
    assert reported(tmp_path, code) == []


def test_a_removal_in_finally_saves_the_one_on_the_straight_path(tmp_path):
    code = """
        running = set()

        async def run(job_id, job):
            running.add(job_id)
            try:
                await job()
            finally:
                running.discard(job_id)
            await job.report()
            running.discard(job_id)
    """
    assert reported(tmp_path, code) == []


HARMLESS = {
    "a cache that each instance has of its own": """
        import methodtools

        class Group:
            @methodtools.lru_cache(maxsize=None)
            def count(self):
                return 1
    """,
    "an item of a list that is replaced": """
        contexts = [None, None]

        def handle(session_id, context):
            contexts[session_id] = context
    """,
    "a copy that is added to": """
        SCHEMAS = ["a", "b"]

        def handle(extra):
            schemas = SCHEMAS[:]
            schemas.extend(extra)
            return schemas
    """,
    "websockets that open and close": """
        class Handler:
            clients = set()

            def open(self):
                self.clients.add(self)

            def on_close(self):
                self.clients.discard(self)
    """,
    "a list that an inner function fills for one call": """
        import re

        def extract(text):
            found = []

            def replace(match):
                found.append(match)
                return ""

            return re.sub("x", replace, text), found

        def sort(items):
            seen = []

            def key(item):
                seen.append(item)
                return item

            return sorted(items, key=key), list(map(key, items))
    """,
    "the one thing that is made while a list is empty": """
        zones = []

        def zone(user_id):
            if len(zones) == 0:
                zones.append(object())
            return zones[0]
    """,
    "connections that come and go": """
        class Server:
            def __init__(self):
                self.clients = {}

            def on_connect(self, client_id, client):
                self.clients[client_id] = client

            def on_close(self, client_id):
                self.clients.pop(client_id, None)

        server = Server()
        bus.on("connect", server.on_connect)
        bus.on("close", server.on_close)
    """,
    "a text that is put together from an entry": """
        NAMES = ["good", "bad"]

        def told(code, detail):
            text = NAMES[code]
            text += f" ({detail})"
            return text
    """,
    "a list that is taken over and begun anew": """
        class Queue:
            def __init__(self):
                self.waiting = []
                self.events = []

            def turn(self):
                if not self.events:
                    waiting = self.waiting
                    self.waiting = []
                    for one in waiting:
                        one()

            def flush(self, callback):
                self.waiting.append(callback)
                self.turn()

        queue = Queue()
    """,
    "a list that a factory fills once": """
        def factory(token):
            metadata = []
            metadata.append(("authorization", token))

            def call():
                return metadata

            return call
    """,
    "hooks that can be taken out again": """
        hooks = []

        def register(hook):
            hooks.append(hook)

        def unregister(hook):
            hooks.remove(hook)

        def on_request(request):
            register(request.hook)
    """,
    "a type of a framework that has the name of a container": """
        from framework import Dict

        class Manager:
            connections = Dict()

            def connect(self, user_id):
                self.connections[user_id] = 1
    """,
    "a list that is made anew in front of the loop that fills it": """
        class Resolver:
            def resolve(self, names):
                self.found = []
                for name in names:
                    self.found.append(name)

        resolver = Resolver()
    """,
    "an entry that an instance takes out when it ends": """
        class Connection:
            sessions = {}

            def handle(self, request):
                self.sessions[self.session_id] = request

            def close(self):
                self.sessions.pop(self.session_id)
    """,
    "a cache that is cleared": """
        from functools import cache

        class Resolver:
            @cache
            def servers(self):
                return []

            def configure(self):
                self.servers.cache_clear()
    """,
    "the one answer of a function that is asked once": """
        def memoize(function):
            result = []

            def wrapped():
                if not result:
                    result.append(function())
                return result[0]

            return wrapped
    """,
    "what is made once behind a question for it": """
        class Pipeline:
            def __init__(self):
                self.provider = None
                self.processors = []

            def ensure(self):
                if self.provider is not None:
                    return
                self.processors.append(object())
                self.provider = object()

        pipeline = Pipeline()
    """,
    "a constant of an instance as key": """
        profiles = {}

        class Plugin:
            def handle(self, event):
                profiles[event.NS] = event
    """,
}


@pytest.mark.parametrize("code", HARMLESS.values(), ids=HARMLESS)
def test_nothing_is_reported_about(tmp_path, code):
    assert reported(tmp_path, code) == []


UNCERTAIN = {
    "classes that a decorator notes": """
        methods = []

        def register(name):
            def wrap(method_cls):
                methods.append(name)
                return method_cls
            return wrap

        def decorated(name):
            return register(name)
    """,
    "ids of what somebody sets up": """
        locks = {}

        def handle(server):
            locks[server.server_id] = object()
    """,
    "the addresses of things": """
        cache = {}

        def handle(config):
            cache[id(config)] = 1
    """,
    "a list that an event empties": """
        waiting = []

        def handle(thing):
            waiting.append(thing)

        def flush():
            waiting.clear()

        bus.on("flush", flush)
    """,
    "a list that is emptied when the program starts": """
        records = []

        def handle(record):
            records.append(record)

        def _release():
            records.clear()

        _release()
    """,
    "what is started": """
        tunnels = []

        def start_tunnel(url):
            tunnels.append(url)
    """,
    "a list of names that has each once": """
        class Printer:
            def __init__(self):
                self.broken = []

            def data(self, hooks):
                for name in hooks:
                    if name in self.broken:
                        continue
                    self.broken.append(name)

        printer = Printer()
    """,
    "what a function captures that its caller has": """
        def appender():
            items = []

            def append(message):
                items.append(message)

            return append

        def handle(messages):
            add = appender()
            for message in messages:
                add(message)
    """,
    "warnings that were said": """
        said = set()

        def warn_once(message):
            if message not in said:
                said.add(message)
    """,
    "handlers that are added": """
        handlers = []

        def on_disconnect(handler):
            handlers.append(handler)
    """,
    "routes that a decorator adds": """
        routes = []

        def route(path):
            def inner(view):
                routes.append((path, view))
                return view
            return inner

        app = route
    """,
    "something that is made sure of": """
        processors = []

        def ensure_processor(provider):
            if provider.kind == 1:
                processors.append(object())
    """,
    "a class of classes": """
        class Meta(type):
            members = {}

            def handle(cls, user_id):
                cls.members[user_id] = 1
    """,
    "a field that a base class of another package may copy": """
        from framework import Model

        class Request(Model):
            seen: list = []

            def handle(self, message):
                self.seen.append(message)
    """,
    "a key of which a function says nothing": """
        cache = {}

        def handle(request):
            cache[cache_key(request)] = 1

        def cache_key(request):
            return request.kind
    """,
    "a key of which there may be few": """
        cache = {}

        def handle(path):
            cache[path] = 1
    """,
    "a method that is one of several of its name": """
        class One:
            items = []
            def collect(self, x):
                self.items.append(x)

        class Two:
            def collect(self, x, y=0):
                pass

        def on_event(thing, x):
            thing.collect(x)
    """,
}


@pytest.mark.parametrize("code", UNCERTAIN.values(), ids=UNCERTAIN)
def test_nothing_certain_is_said_about(tmp_path, code):
    reported(tmp_path, code)
    levels = {str(finding.confidence) for finding in Scan([tmp_path]).report().findings}
    assert levels in ({"medium"}, {"low"})


def test_a_command_line_runs_once(tmp_path):
    (tmp_path / "cli").mkdir()
    code = """
        FAILED = ValueError()
        seen = {}

        def handle(user_id):
            seen[user_id] = 1
            raise FAILED
    """
    (tmp_path / "cli" / "tool.py").write_text(dedent(code), encoding="utf-8")
    levels = {f.symbol: f.confidence for f in Scan([tmp_path]).report().findings}
    assert levels == {"cli.tool.seen": "low", "cli.tool.FAILED": "low"}
