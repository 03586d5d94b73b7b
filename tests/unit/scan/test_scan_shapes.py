"""Real shapes of leaks, in own code: each is found; each of their twins with a bound is not."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Finding, Scan


def found(folder: Path, *, library: bool = False, **files: str) -> list[Finding]:
    """Scan modules given as keyword arguments; findings of low confidence are left out."""
    for name, code in files.items():
        (folder / f"{name}.py").write_text(dedent(code), encoding="utf-8")
    findings = Scan([folder], library=library).report().findings
    return [finding for finding in findings if finding.confidence != "low"]


def short(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.rule, finding.symbol) for finding in findings]


PLAN_SERVICE = """
    class MemoryService: ...

    class PlanService:
        def __init__(self):
            self._services = {}

        def get_memory_service(self, session_id):
            if session_id not in self._services:
                self._services[session_id] = MemoryService()
            return self._services[session_id]

        def plan(self, session_id):
            return self.get_memory_service(session_id)

        def refine(self, session_id):
            return self.get_memory_service(session_id)

        def clear_memory(self, session_id):
            self._services.pop(session_id, None)
"""


def test_a_session_map_whose_opt_in_clean_up_nobody_calls(tmp_path):
    [finding] = found(tmp_path, app=PLAN_SERVICE)
    assert (finding.rule, finding.symbol) == ("FLD103", "app.PlanService._services")
    assert finding.confidence == "medium"


def test_the_same_map_kept_by_the_module_lives_long(tmp_path):
    [finding] = found(tmp_path, app=PLAN_SERVICE + "\n    service = PlanService()\n")
    assert (finding.rule, finding.confidence) == ("FLD103", "medium")
    assert finding.proofs[0].state == "proved"
    assert all(proof.at.rpartition(":")[2].isdigit() for proof in finding.proofs)


def test_sessions_that_only_a_request_or_a_shutdown_deletes(tmp_path):
    findings = found(
        tmp_path,
        manager="""
        class SessionManager:
            def __init__(self):
                self.sessions = {}

            def message(self, session_id, text):
                self.sessions[session_id] = text

            def delete(self, session_id):
                self.sessions.pop(session_id, None)

            def shutdown(self):
                self.sessions.clear()
        """,
        api="""
        from manager import SessionManager

        app = framework()
        manager = SessionManager()

        @app.post("/message")
        def message(session_id, text):
            manager.message(session_id, text)

        @app.delete("/session")
        def delete(session_id):
            manager.delete(session_id)
        """,
    )
    assert short(findings) == [("FLD102", "manager.SessionManager.sessions")]
    assert findings[0].confidence == "medium"


def test_a_history_that_is_trimmed_only_on_the_copy_that_is_sent(tmp_path):
    findings = found(
        tmp_path,
        provider="""
        class Provider:
            def __init__(self):
                self.conversation_history = []

            def ask(self, message, send):
                self.conversation_history.append(message)
                window = self.conversation_history[-20:]
                return send(window)

        provider = Provider()
        """,
    )
    assert short(findings) == [("FLD202", "provider.Provider.conversation_history")]


def test_a_batch_limit_that_warns_and_appends_anyway(tmp_path):
    findings = found(
        tmp_path,
        batch="""
        import logging

        class Batcher:
            MAX = 50

            def __init__(self):
                self.batch = []

            def add(self, message):
                if len(self.batch) > self.MAX:
                    logging.warning("over the limit")
                self.batch.append(message)

        batcher = Batcher()
        """,
    )
    assert short(findings) == [("FLD201", "batch.Batcher.batch")]


def test_caches_that_were_announced_as_bounded_and_are_not(tmp_path):
    findings = found(
        tmp_path,
        caches="""
        import time

        class Analytics:
            def __init__(self):
                self._cache = {}
                self._metrics = []

            def record(self, url, value):
                self._cache[url] = value
                self._metrics.append((time.time(), value))

        analytics = Analytics()
        """,
    )
    assert sorted(short(findings)) == [
        ("FLD101", "caches.Analytics._cache"),
        ("FLD101", "caches.Analytics._metrics"),
    ]


def test_a_tracker_that_keeps_every_sample(tmp_path):
    findings = found(
        tmp_path,
        tracker="""
        class Tracker:
            samples: list = []

            @classmethod
            def sample(cls, value):
                cls.samples.append(value)
        """,
    )
    assert short(findings) == [("FLD101", "tracker.Tracker.samples")]
    assert findings[0].confidence == "medium"


def test_a_map_that_only_the_deleted_event_of_one_handler_cleans(tmp_path):
    findings = found(
        tmp_path,
        host="""
        state = {}

        def on_event(event):
            if event.type == "session.created":
                state[event.session_id] = event
            elif event.type == "session.deleted":
                state.pop(event.session_id, None)
        """,
    )
    assert short(findings) == [("FLD102", "host.state")]


def test_a_map_that_a_method_bound_to_the_deleted_event_cleans(tmp_path):
    findings = found(
        tmp_path,
        host="""
        class Host:
            def __init__(self, bus):
                self.queues = {}
                bus.subscribe(self._deleted)

            def push(self, session_id, item):
                self.queues.setdefault(session_id, []).append(item)

            def _deleted(self, session_id):
                del self.queues[session_id]

        host = Host(make_bus())
        """,
    )
    assert ("FLD102", "host.Host.queues") in short(findings)


BOUNDED = {
    "an eviction at the limit": """
        class Cache:
            def __init__(self):
                self.items = {}

            def put(self, key, value):
                if len(self.items) >= 100:
                    self.items.pop(next(iter(self.items)))
                self.items[key] = value

        cache = Cache()
    """,
    "a refusal at the limit": """
        waiting = []

        def enqueue(job):
            if len(waiting) > 10:
                raise OverflowError
            waiting.append(job)
    """,
    "growth below the limit only": """
        waiting = []

        def enqueue(job):
            if len(waiting) < 10:
                waiting.append(job)
    """,
    "a trim in a helper": """
        class Log:
            def __init__(self):
                self.lines = []

            def write(self, line):
                self.lines.append(line)
                self._trim()

            def _trim(self):
                del self.lines[:-100]

        log = Log()
    """,
    "a trim through an alias": """
        history = []

        def say(message):
            recent = history
            recent.append(message)
            while len(recent) > 10:
                recent.pop(0)
    """,
    "a function that trims what it is given": """
        history = []

        def trim(items):
            del items[:-10]

        def say(message):
            history.append(message)
            trim(history)
    """,
    "a sweeper thread": """
        import threading

        class Sessions:
            def __init__(self):
                self.live = {}
                threading.Thread(target=self._sweep, daemon=True).start()

            def open(self, session_id):
                self.live[session_id] = object()

            def _sweep(self):
                for session_id in list(self.live):
                    del self.live[session_id]

        sessions = Sessions()
    """,
    "a constructor argument": """
        class Evictor:
            def __init__(self, items):
                self.items = items

            def run(self):
                while True:
                    self.evict()

            def evict(self):
                self.items.popitem()

        class Cache:
            def __init__(self):
                self.items = {}
                self.evictor = Evictor(self.items)

            def put(self, key, value):
                self.items[key] = value

        cache = Cache()
    """,
    "constant keys": """
        totals = {}

        def count(value):
            totals["all"] = value
    """,
    "keys that are members of an enum": """
        import enum

        class Colour(enum.Enum):
            RED = 1

        seen = {}

        def paint(colour: Colour):
            seen[colour] = True
    """,
    "keys that all callers give as constants": """
        counts = {}

        def bump(name):
            counts[name] = counts.get(name, 0) + 1

        def handle(request):
            bump("requests")
    """,
    "types as keys": """
        encoders = {}

        def encode(value):
            encoders[type(value)] = str
    """,
    "registration while the module is loaded": """
        commands = []

        def command(function):
            commands.append(function)
            return function

        @command
        def start(): ...
    """,
    "a parser that is made for each call": """
        class Parser:
            def __init__(self):
                self.tokens = []

            def feed(self, text):
                self.tokens.append(text)

        def parse(text):
            parser = Parser()
            parser.feed(text)
            return len(parser.tokens)
    """,
    "a deque with a length": """
        from collections import deque

        recent = deque(maxlen=10)

        def say(message):
            recent.append(message)
    """,
    "a swap": """
        class Batch:
            def __init__(self):
                self.items = []

            def add(self, item):
                self.items.append(item)

            def run(self):
                while True:
                    self.flush()

            def flush(self):
                items, self.items = self.items, []
                return items

        batch = Batch()
    """,
    "a list filled while its owner is made": """
        class Table:
            def __init__(self, rows):
                self.rows = []
                for row in rows:
                    self._add(row)

            def _add(self, row):
                self.rows.append(row)

        table = Table([1])
    """,
    "a task that discards itself": """
        import asyncio

        tasks = set()

        def spawn(work):
            task = asyncio.create_task(work())
            tasks.add(task)
            task.add_done_callback(lambda done: tasks.discard(done))
    """,
    "a connection that its endpoint removes": """
        class Manager:
            def __init__(self):
                self.active = []

            def connect(self, socket):
                self.active.append(socket)

            def disconnect(self, socket):
                self.active.remove(socket)

        manager = Manager()

        @app.websocket("/ws")
        async def endpoint(socket):
            manager.connect(socket)
            try:
                await socket.receive()
            finally:
                manager.disconnect(socket)
    """,
}


@pytest.mark.parametrize("shape", BOUNDED)
def test_nothing_is_said_about(shape, tmp_path):
    assert short(found(tmp_path, app=BOUNDED[shape])) == []


def test_a_clean_up_that_only_tests_call_does_not_count(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_app.py").write_text("import app\napp.reset_all()\n")
    findings = found(
        tmp_path,
        app="""
        seen = {}

        def handle(request_id):
            seen[request_id] = True

        def main(request_id):
            handle(request_id)

        def forget_everything():
            seen.clear()
        """,
    )
    assert short(findings) == [("FLD103", "app.seen")]


def test_public_classes_of_a_library_are_assumed_to_live_and_never_certain(tmp_path):
    code = """
        def make(target):
            return Poller(target)

        class Poller:
            def __init__(self, target):
                self.results = []

            def poll(self, value):
                self.results.append(value)
    """
    assert short(found(tmp_path, app=code)) == []
    [finding] = found(tmp_path, library=True, app=code)
    assert (finding.symbol, finding.confidence) == ("app.Poller.results", "medium")
    assert finding.proofs[0].state == "assumed"


def test_imports_are_followed_from_file_to_file(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("from .state import sessions as live\n")
    (tmp_path / "pkg" / "state.py").write_text("sessions = {}\n")
    (tmp_path / "pkg" / "api.py").write_text(
        "from . import live\n\ndef handle(session_id):\n    live[session_id] = 1\n"
    )
    findings = Scan([tmp_path]).report().findings
    assert short(list(findings)) == [("FLD101", "pkg.state.sessions")]


def test_what_a_try_finally_removes_is_no_pair_and_what_an_await_skips_is_one(tmp_path):
    leaky = """
        running = set()

        @app.post("/jobs")
        async def run(job_id, job):
            running.add(job_id)
            await job()
            running.discard(job_id)
    """
    [finding] = found(tmp_path, app=leaky)
    assert (finding.rule, finding.confidence) == ("FLD109", "high")
    assert finding.shrinks[0].endswith("app.py:8")


def test_a_call_that_may_raise_makes_a_pair_less_certain(tmp_path):
    code = """
        running = {}

        def run(job_id, job):
            running[job_id] = job
            job.execute(job_id)
            running.pop(job_id)
    """
    [finding] = found(tmp_path, app=code)
    assert (finding.rule, finding.confidence) == ("FLD109", "medium")


@pytest.mark.parametrize("leaving", ["return None", "raise ValueError"])
def test_an_early_way_out_between_adding_and_removing_is_certain(tmp_path, leaving):
    code = f"""
        running = {{}}

        @app.post("/jobs")
        def run(job_id, job):
            running[job_id] = job
            if job is None:
                {leaving}
            running.pop(job_id)
    """
    [finding] = found(tmp_path, app=code)
    assert (finding.rule, finding.confidence) == ("FLD109", "high")
    assert finding.message == "app.running keeps an entry if line 8 exits early"


def test_an_early_way_out_that_removes_first_is_no_finding(tmp_path):
    code = """
        running = {}

        def run(job_id, job):
            running[job_id] = job
            if job is None:
                running.pop(job_id)
                return
            running.pop(job_id)
    """
    assert found(tmp_path, app=code) == []


def test_another_remover_that_only_an_event_calls_does_not_save_a_pair(tmp_path):
    code = """
        class Jobs:
            def __init__(self, bus):
                self.running = {}
                bus.on("gone", self.gone)

            async def run(self, job_id, job):
                self.running[job_id] = job
                await job()
                del self.running[job_id]

            def gone(self, job_id):
                self.running.pop(job_id, None)

        jobs = Jobs(make_bus())
    """
    [finding] = found(tmp_path, app=code)
    assert (finding.rule, finding.confidence) == ("FLD109", "medium")
