"""FLD1xx: what the rules of growth find, and what they do not."""

from __future__ import annotations

import pytest

FOUND: dict[str, tuple[str, str | dict[str, str]]] = {
    "a map that every caller fills": (
        "FLD101",
        """
        answers = {}

        def ask(question):
            answers[question] = len(question)
        """,
    ),
    "a map that only a goodbye empties": (
        "FLD102",
        """
        rooms = {}

        def on_join(user_id, room):
            rooms[user_id] = room

        def shutdown():
            rooms.clear()
        """,
    ),
    "a map with a clean-up that nobody calls": (
        "FLD103",
        """
        rooms = {}

        def enter(user_id, room):
            rooms[user_id] = room

        def _forget(user_id):
            rooms.pop(user_id, None)
        """,
    ),
    "a list of the class body": (
        "FLD104",
        """
        class Agent:
            notes = []

            def forget(self):
                self.notes.clear()

            def note(self, text):
                self.forget()
                self.notes.append(text)
        """,
    ),
    "a counter that is read by a key that is gone": (
        "FLD105",
        """
        from collections import defaultdict

        visits = defaultdict(int)

        def leave(user_id):
            visits.pop(user_id, None)

        def visit(user_id):
            visits[user_id] += 1

        def how_many(user_id):
            return visits[user_id]
        """,
    ),
    "a lock that is set as a default": (
        "FLD106",
        """
        import threading

        locks = {}

        def lock_of(user_id):
            return locks.setdefault(user_id, threading.Lock())
        """,
    ),
    "locks that a look-up makes": (
        "FLD106",
        """
        import threading
        from collections import defaultdict

        locks = defaultdict(threading.Lock)

        def work(user_id):
            with locks[user_id]:
                return user_id
        """,
    ),
    "a set by which things are done once": (
        "FLD107",
        """
        greeted = set()

        def greet(user_id, say):
            if user_id in greeted:
                return
            greeted.add(user_id)
            say("hello")
        """,
    ),
    "results that a decorator remembers": (
        "FLD108",
        """
        def remembered(function):
            results = {}

            def inner(argument):
                if argument not in results:
                    results[argument] = function(argument)
                return results[argument]

            return inner
        """,
    ),
    "an entry that a failure leaves behind": (
        "FLD109",
        """
        running = {}

        async def run(job_id, work):
            running[job_id] = work
            await work()
            del running[job_id]
        """,
    ),
    "instances that put themselves into a register": (
        "FLD110",
        """
        workers = set()

        class Worker:
            def __init__(self, job):
                self.job = job
                workers.add(self)

        def handle(job):
            return Worker(job).job
        """,
    ),
    "a list of weak references": (
        "FLD111",
        """
        import weakref

        watchers = []

        def watch(thing):
            watchers.append(weakref.ref(thing))
        """,
    ),
    "a value that is made of its key": (
        "FLD111",
        """
        from weakref import WeakKeyDictionary

        wrappers = WeakKeyDictionary()

        def wrap(thing):
            wrappers[thing] = Wrapper(thing)
        """,
    ),
    "a method of the key": (
        "FLD111",
        """
        import weakref

        callbacks = weakref.WeakKeyDictionary()

        def handle(thing):
            callbacks[thing] = thing.close
        """,
    ),
    "a finalizer for each use of an instance": (
        "FLD111",
        """
        import weakref

        class Pool:
            def acquire(self, connection):
                weakref.finalize(self, connection.close)
                return connection

        pool = Pool()
        """,
    ),
    "a finalizer for each use of a global": (
        "FLD111",
        """
        from weakref import finalize

        class Registry: ...

        registry = Registry()

        def handle(connection):
            finalize(registry, connection.close)
        """,
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_a_rule_finds(case, found):
    rule, code = FOUND[case]
    files = code if isinstance(code, dict) else {"app": code}
    assert [finding.rule for finding in found(**files)] == [rule]


CLEAN = {
    "a counter that is read with get": """
        from collections import defaultdict

        visits = defaultdict(int)

        def leave(user_id):
            visits.pop(user_id, None)

        def visit(user_id):
            visits[user_id] += 1

        def how_many(user_id):
            return visits.get(user_id, 0)
    """,
    "an entry that goes whatever happens": """
        running = {}

        async def run(job_id, work):
            running[job_id] = work
            try:
                await work()
            finally:
                del running[job_id]
    """,
    "instances that take themselves out again": """
        workers = set()

        class Worker:
            def __init__(self, job):
                self.job = job
                workers.add(self)

            def close(self):
                workers.discard(self)
    """,
    "a container of the class that is declared so": """
        from typing import ClassVar

        class Agent:
            notes: ClassVar[list] = []

            def forget(self):
                self.notes.clear()

            def note(self, text):
                self.forget()
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


@pytest.mark.parametrize("case", CLEAN)
def test_no_rule_speaks_of(case, found):
    assert [(finding.rule, finding.symbol) for finding in found(app=CLEAN[case])] == []
