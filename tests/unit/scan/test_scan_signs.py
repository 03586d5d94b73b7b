"""What the rules for ages, states and clients and the preview rules find, and what they do not."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import RULES, Finding, Scan


def found(folder: Path, *, preview: bool = True, **files: str) -> list[Finding]:
    for name, code in files.items():
        (folder / f"{name}.py").write_text(dedent(code), encoding="utf-8")
    findings = Scan([folder]).report(preview=preview).findings
    return [finding for finding in findings if finding.confidence != "low"]


FOUND = {
    "an age behind the clock of one's own": (
        "FLD203",
        """
        class Cache:
            def __init__(self, clock):
                self._clock = clock
                self._entries = {}

            def put(self, user_id, value):
                self._entries[user_id] = Entry(value, self._clock())

            def get(self, user_id):
                entry = self._entries.get(user_id)
                if entry is None or entry.until < self._clock():
                    return None
                return entry.value

        cache = Cache(tick)
        """,
    ),
    "an age of a nested pair in a loop": (
        "FLD203",
        """
        from time import monotonic

        seen = {}

        def note(user_id):
            seen[user_id] = monotonic()

        def active():
            return [user for user, at in seen.items() if monotonic() - seen[user] < 60]
        """,
    ),
    "a member of an enum set on what a look-up returned": (
        "FLD204",
        """
        orders = {}

        def place(order_id, order):
            orders[order_id] = order

        def ship(order_id):
            order = orders[order_id]
            order.state = State.SHIPPED
        """,
    ),
    "a task of one's own that is done": (
        "FLD204",
        """
        class Task:
            status = "new"

        tasks = {}

        def accept(task_id):
            tasks[task_id] = Task(task_id)

        def finish(task_id):
            tasks[task_id].status = "done"
        """,
    ),
    "times of access beside a map with a limit": (
        "FLD205",
        """
        class Cache:
            def __init__(self):
                self._items = {}
                self._times = {}

            def get(self, key):
                self._times[key] = 1
                return self._items.get(key)

            def put(self, key, value):
                if len(self._items) > 100:
                    self._items.popitem()
                self._items[key] = value
                self._times[key] = 1

        cache = Cache()
        """,
    ),
    "a client that is made, used and dropped in one expression": (
        "FLD505",
        """
        def fetch(url):
            return Session().get(url).text
        """,
    ),
    "an executor of one call": (
        "FLD505",
        """
        from concurrent.futures import ThreadPoolExecutor

        def fan_out(work, items):
            pool = ThreadPoolExecutor(4)
            return list(pool.map(work, items))
        """,
    ),
    "an engine that a coroutine makes": (
        "FLD505",
        """
        async def rows(url, query):
            engine = await create_engine(url)
            async with engine.connect() as connection:
                return await connection.execute(query)
        """,
    ),
    "a class of the program that can be closed": (
        "FLD505",
        """
        class ApiClient:
            def get(self, url): ...
            def close(self): ...

        def handle(url):
            client = ApiClient()
            return client.get(url)
        """,
    ),
    "a cache for tokens": (
        "FLD302",
        """
        import functools

        @functools.lru_cache(maxsize=None)
        def claims(token): ...

        @app.get("/claims")
        def show(token):
            return claims(token)
        """,
    ),
    "a listener of each instance": (
        "FLD403",
        """
        class View:
            def __init__(self, model):
                model.add_change_listener(self.redraw)

            def redraw(self): ...

        def show(model):
            view = View(model)
            view.redraw()
        """,
    ),
    "a listener on what was handed in with its type": (
        "FLD403",
        """
        class Bus: ...

        def handle(bus: Bus):
            bus.on("message", lambda message: message)
        """,
    ),
    "a listener on what an instance was given": (
        "FLD403",
        """
        class Bridge:
            def __init__(self, bus):
                self._bus = bus

            def open_channel(self, channel):
                self._bus.subscribe(lambda event: channel.send(event))
        """,
    ),
    "a timer of the loop that is set for ever": (
        "FLD404",
        """
        def poll(loop, check):
            check()
            loop.call_later(5, poll, loop, check)
        """,
    ),
    "a context variable of another file": (
        "FLD406",
        {
            "state": "from contextvars import ContextVar\n\ncurrent = ContextVar('current')\n",
            "app": "import state\n\ndef handle(request):\n    state.current.set(request)\n",
        },
    ),
    "a queue that somebody reads": (
        "FLD501",
        """
        from queue import Queue

        jobs = Queue(maxsize=0)

        def accept(job):
            jobs.put(job)

        def work():
            while True:
                jobs.get()()
        """,
    ),
    "handles that pile up in a map": (
        "FLD503",
        """
        logs = {}

        def log_of(user_id):
            logs[user_id] = open(f"{user_id}.log", "a")

        def forget(user_id):
            logs.pop(user_id, None)

        def handle(user_id):
            log_of(user_id)
            forget(user_id)
        """,
    ),
    "attributes of a measurement": (
        "FLD504",
        """
        @app.post("/done")
        def done(seconds, session_id):
            histogram.record(seconds, {"session": session_id})
        """,
    ),
    "tags given by name": (
        "FLD504",
        """
        @app.post("/done")
        def done(request):
            statsd.increment("done", tags={"user": request.user_id})
        """,
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_a_rule_finds(case, tmp_path):
    rule, code = FOUND[case]
    files = code if isinstance(code, dict) else {"app": code}
    assert [f.rule for f in found(tmp_path, **files)] == [rule]


CLEAN = {
    "ages by which a sweeper removes": """
        import time

        seen = {}

        def note(user_id):
            seen[user_id] = time.time()
            for user, at in list(seen.items()):
                if time.time() - at > 60:
                    del seen[user]
    """,
    "what is taken out before its age is asked for": """
        import time

        codes = {}

        def issue(user_id, code):
            codes[user_id] = (code, time.time())

        def redeem(user_id):
            code, at = codes.pop(user_id)
            if time.time() - at > 60:
                raise ValueError
            return code
    """,
    "what is taken out whatever its age is": """
        import time

        codes = {}

        def issue(user_id):
            codes[user_id] = time.time()

        def redeem(user_id):
            expired = codes[user_id] < time.time() - 60
            del codes[user_id]
            return not expired
    """,
    "a client that is closed": """
        def fetch(url):
            client = Client()
            try:
                return client.get(url)
            finally:
                client.close()
    """,
    "a client that is handed on": """
        def fetch(url, keep):
            client = Client()
            keep(client)
            return client.get(url)
    """,
    "a client that is returned": """
        def connected(url):
            client = Client()
            client.get(url)
            return client
    """,
    "a client of the start": """
        def main():
            client = Client()
            client.get("/")
    """,
    "a class of the program that has nothing to close": """
        class Session:
            def get(self, key): ...

        def handle(key):
            session = Session()
            return session.get(key)
    """,
    "a thing that is called like a client and does something else": """
        def handle(record):
            session = Session(record)
            session.describe()
    """,
    "a container of the class that is declared so": """
        from typing import ClassVar

        class Agent:
            notes: ClassVar[list] = []

            def forget(self):
                self.notes.clear()

            def note(self, text):
                self.notes.append(text)
    """,
    "a container of the class that is filled by a class method": """
        class Agent:
            notes = []

            @classmethod
            def note(cls, text):
                cls.notes.append(text)
                if len(cls.notes) > 10:
                    cls.notes.clear()
    """,
    "a cache for a fixed set": """
        from functools import cache

        @cache
        def parser(kind): ...
    """,
    "a listener for the end of the process": """
        import atexit

        def handle(file):
            atexit.register(lambda: file.flush())
    """,
    "a listener that the owner of both adds": """
        class Window:
            def __init__(self, label):
                self._button = Button(label)
                self._button.subscribe(self.click)

            def click(self): ...

        def show(label):
            window = Window(label)
            window.click()
    """,
    "a listener whose handle is kept": """
        def handle(bus, keep):
            keep(bus.subscribe(lambda event: event))
    """,
    "a plain function that listens": """
        def log(event): ...

        def handle(bus):
            bus.subscribe(log)
    """,
    "a listener that is added at start-up": """
        def setup(bus, store):
            bus.subscribe(lambda event: store(event))
    """,
    "a timer that may stop": """
        def poll(loop, check):
            if check():
                return
            loop.call_later(5, poll, loop, check)
    """,
    "a timer of something that lives as long as the process": """
        from threading import Timer

        class Flusher:
            def flush(self):
                Timer(30, self.flush).start()

        flusher = Flusher()
    """,
    "a timer for something else": """
        def handle(loop, done):
            loop.call_later(5, done)
    """,
    "a variable that is reset by a callback": """
        from contextvars import ContextVar

        current = ContextVar("current")

        def handle(request, later):
            token = current.set(request)
            later(current.reset, token)
    """,
    "an event that is set": """
        from threading import Event

        ready = Event()

        def handle(request):
            ready.set(request)
    """,
    "a variable that its caller asked to set": """
        from contextvars import ContextVar

        current = ContextVar("current")

        def set_current(request):
            current.set(request)
    """,
    "a constant in a variable": """
        from contextvars import ContextVar

        active = ContextVar("active")

        def handle(request):
            active.set(True)
    """,
    "a queue with a size": """
        from queue import Queue

        jobs = Queue(100)

        def accept(job):
            jobs.put(job)
    """,
    "a queue of one call": """
        from queue import Queue

        def run(items):
            jobs = Queue()
            for item in items:
                jobs.put(item)
            return jobs
    """,
    "a handle that another method closes": """
        class Upload:
            def __init__(self, path):
                self._file = open(path)

            def end(self):
                self._file.close()

        def receive(path):
            upload = Upload(path)
            upload.end()
    """,
    "a handle that is entered": """
        class Upload:
            def __init__(self, path):
                self._file = open(path)

            def read(self):
                with self._file:
                    return self._file.read()

        def receive(path):
            upload = Upload(path)
            return upload.read()
    """,
    "a handle whose end somebody is told": """
        class Upload:
            def __init__(self, path, stack):
                self._file = open(path)
                stack.push(self._file.close)

        def receive(path, stack):
            upload = Upload(path, stack)
            return upload.name
    """,
    "a handle that the process keeps": """
        class Lock:
            def __init__(self, path):
                self._file = open(path)

        lock = Lock("lock")
    """,
    "a handle of a method that is not the maker": """
        class Reader:
            def renew(self, path):
                self._file = open(path)

        def read(path):
            reader = Reader()
            reader.renew(path)
    """,
    "handles in a map that is not known": """
        def keep(files, user_id):
            files[user_id] = open(user_id)
    """,
    "handles in a map of somewhere else": """
        from elsewhere import files

        def keep(user_id):
            files[user_id] = open(user_id)
    """,
    "handles under a few fixed keys": """
        files = {}

        def keep():
            files["log"] = open("log")
            files["out"] = open("out")
    """,
    "a queue that is filled at start-up by something that passes": """
        from queue import Queue

        class Plan:
            def __init__(self, steps):
                self._steps = Queue()
                self._fill(steps)

            def _fill(self, steps):
                for step in steps:
                    self._steps.put(step)

        def run(steps):
            plan = Plan(steps)
            plan.go()
    """,
    "labels of a fixed set": """
        def count(requests, method, *rest):
            requests.labels(method, "ok", *rest).inc()
    """,
    "labels at start-up": """
        def setup(requests, user_id):
            requests.labels(user_id).inc()
    """,
}


@pytest.mark.parametrize("case", CLEAN)
def test_no_rule_speaks_of(case, tmp_path):
    assert [(f.rule, f.symbol) for f in found(tmp_path, app=CLEAN[case])] == []


def test_what_only_its_next_reader_removes_is_less_certain(tmp_path):
    [finding] = found(
        tmp_path,
        app="""
        import time

        tokens = {}

        def remember(user_id, token):
            tokens[user_id] = (token, time.time())

        def token_of(user_id):
            token, at = tokens.get(user_id, (None, 0))
            if time.time() - at > 3600:
                tokens.pop(user_id, None)
                return None
            return token
        """,
    )
    assert (finding.rule, finding.confidence) == ("FLD203", "medium")
    assert "asks for it again" in finding.proofs[3].claim


def test_the_line_that_only_looks_like_a_bound_is_named(tmp_path):
    ttl, flip = (
        FOUND["an age behind the clock of one's own"][1],
        FOUND["a member of an enum set on what a look-up returned"][1],
    )
    aged, flipped = found(tmp_path, a=ttl, b=flip)
    assert aged.proofs[3].at.endswith("a.py:12")
    assert "becomes State.SHIPPED" in flipped.proofs[3].claim


SHARED = """
class Agent:
    notes = []

    def forget(self):
        self.notes.clear()

    def note(self, text):
        self.notes.append(text){comment}
"""


def test_preview_rules_run_when_they_are_asked_for(tmp_path):
    (tmp_path / "app.py").write_text(SHARED.format(comment=""), encoding="utf-8")
    scan = Scan([tmp_path])
    assert scan.report().findings == ()
    assert [f.rule for f in scan.report(preview=True).findings] == ["FLD104"]
    assert [f.rule for f in scan.report(select=["FLD104"]).findings] == ["FLD104"]
    assert scan.report(select=["FLD1"]).findings == ()
    assert scan.report(preview=True, ignore=["FLD104"]).findings == ()


def test_a_comment_for_a_preview_rule_waits_until_the_rule_runs(tmp_path):
    comment = "  # floodline: ignore[FLD104] one list for all is meant"
    (tmp_path / "app.py").write_text(SHARED.format(comment=comment), encoding="utf-8")
    assert Scan([tmp_path]).report().problems == ()
    assert [f.status for f in Scan([tmp_path]).report(preview=True).findings] == ["suppressed"]
    (tmp_path / "app.py").write_text(f"x = 1{comment}\n", encoding="utf-8")
    assert [p.line for p in Scan([tmp_path]).report(preview=True).problems] == [1]


def test_a_bound_is_no_answer_to_a_client(tmp_path):
    code = FOUND["an executor of one call"][1].replace("(4)", "(4)  # floodline: bounded[by luck]")
    (finding,) = found(tmp_path, app=code)
    assert finding.status == "new"


def test_no_preview_rule_says_what_another_rule_says(tmp_path):
    code = SHARED.format(comment="").replace("self.notes.clear()", "pass")
    assert [f.rule for f in found(tmp_path, app=code)] == ["FLD101"]


def test_the_rules_of_tests_are_left_alone(tmp_path):
    (tmp_path / "tests").mkdir()
    for case, (_, code) in FOUND.items():
        if isinstance(code, str):
            name = case.replace(" ", "_").replace("'", "")
            (tmp_path / "tests" / f"{name}.py").write_text(dedent(code), encoding="utf-8")
    assert Scan([tmp_path]).report(preview=True).findings == ()


def test_preview_rules_say_so_on_their_page():
    pages = Path(__file__).parents[3] / "docs" / "rules"
    for rule in RULES.values():
        text = (pages / f"{rule.code}-{rule.name}.md").read_text(encoding="utf-8")
        assert ("--preview" in text) is rule.preview


def test_an_access_order_beside_a_capped_map_is_named_with_the_line_of_the_cap(tmp_path):
    [finding] = found(
        tmp_path,
        app="""
        class Cache:
            def __init__(self):
                self._items = {}
                self._access_order = []

            def put(self, key, value):
                if len(self._items) >= 100:
                    self._items.pop(next(iter(self._items)))
                self._items[key] = value
                self._access_order.append(key)

        cache = Cache()
        """,
    )
    assert (finding.rule, finding.confidence) == ("FLD205", "medium")
    assert finding.symbol == "app.Cache._access_order"
    assert "keeps what line 9 drops beside it" in finding.message


def test_a_list_beside_a_map_without_a_bound_is_another_matter(tmp_path):
    code = """
    class Log:
        def __init__(self):
            self._seen = {}
            self._lines = []

        def note(self, key, value):
            self._seen[key] = value
            self._lines.append(key)

    log = Log()
    """
    assert {f.rule for f in found(tmp_path, app=code)} == {"FLD101"}


WEAK = {
    "a value that is made of its key": """
        from weakref import WeakKeyDictionary

        wrappers = WeakKeyDictionary()

        def wrap(thing):
            wrappers[thing] = Wrapper(thing)
    """,
    "a method of the key": """
        import weakref

        callbacks = weakref.WeakKeyDictionary()

        def handle(thing):
            callbacks[thing] = thing.close
    """,
    "a finalizer for each use of an instance": """
        import weakref

        class Pool:
            def acquire(self, connection):
                weakref.finalize(self, connection.close)
                return connection

        pool = Pool()
    """,
    "a finalizer for each use of a global": """
        from weakref import finalize

        class Registry: ...

        registry = Registry()

        def handle(connection):
            finalize(registry, connection.close)
    """,
}


@pytest.mark.parametrize("case", WEAK)
def test_a_weak_reference_that_does_not_let_go(case, tmp_path):
    assert [f.rule for f in found(tmp_path, app=WEAK[case])] == ["FLD111"]


LETS_GO = {
    "a value that has nothing to do with its key": """
        from weakref import WeakKeyDictionary

        sizes = WeakKeyDictionary()

        def handle(thing):
            sizes[thing] = measure(1)
    """,
    "an entry that is removed": """
        from weakref import WeakKeyDictionary

        wrappers = WeakKeyDictionary()

        def handle(thing):
            wrappers[thing] = Wrapper(thing)
            del wrappers[thing]
    """,
    "an entry that is made at start-up": """
        from weakref import WeakKeyDictionary

        wrappers = WeakKeyDictionary()

        def setup(thing):
            wrappers[thing] = Wrapper(thing)
    """,
    "a finalizer for each new object": """
        import weakref

        class Connection:
            def __init__(self, handle):
                weakref.finalize(self, handle.close)

        def handle(handle):
            connection = Connection(handle)
            weakref.finalize(connection, print)
    """,
    "a finalizer that is made once": """
        import weakref

        class Pool:
            def __init__(self):
                self._finalizer = None

            def acquire(self, connection):
                if self._finalizer is None:
                    self._finalizer = weakref.finalize(self, connection.close)

        pool = Pool()
    """,
    "a finalizer of something else": """
        from elsewhere import finalize

        class Report:
            def write(self, text):
                finalize(self, text)
                self.job.finalize(self, text)

        report = Report()
    """,
    "a finalizer of an instance that passes": """
        import weakref

        class Request:
            def track(self, file):
                weakref.finalize(self, file.close)

        def handle(file):
            request = Request()
            request.track(file)
    """,
}


@pytest.mark.parametrize("case", LETS_GO)
def test_a_weak_reference_that_lets_go(case, tmp_path):
    assert found(tmp_path, app=LETS_GO[case]) == []
