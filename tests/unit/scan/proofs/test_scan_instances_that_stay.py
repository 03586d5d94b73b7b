"""Small programs: what is kept by a loop, by its class or by a copy, and so does not go."""

from __future__ import annotations

import pytest
from test_scan_small_programs import APP, Program, reported

GROWS: dict[str, Program] = {
    "a history that repeats no line, and so is asked whether it is empty": (
        "history",
        {
            "main": APP
            + """
    history = []
    @app.post("/")
    def enter(request):
        if not history or history[0] != request.text:
            history.insert(0, request.text)
"""
        },
    ),
    "a map that is replaced with a copy of what is given": (
        "_allowed",
        {
            "main": APP
            + """
    class Shell:
        def __init__(self):
            self._allowed = {}
        @property
        def allowed(self):
            return self._allowed
        def allow(self, user_id, path):
            self._allowed[user_id] = path
        def load(self, allowed):
            self._allowed = dict(allowed)
    shell = Shell()
    @app.post("/allow")
    def allow(request):
        shell.allow(request.user_id, request.path)
    def refresh(allowed):
        while True:
            shell.load({**shell.allowed, **allowed.get()})
"""
        },
    ),
    "an object for each key of unknown origin, in a map that stays": (
        "gates",
        {
            "main": APP
            + """
    import threading

    gates = {}
    class Gate:
        def __init__(self, thread):
            self.thread = thread
    @app.post("/")
    def enter(request):
        thread = threading.current_thread()
        if thread not in gates:
            gates[thread] = Gate(thread)
        return gates[thread]
"""
        },
    ),
    "a map of a class with an unknown base, which its class methods read": (
        "by_id",
        {
            "main": APP
            + """
    from orm import Base

    class User(Base):
        by_id: dict[str, "User"] = {}
        def __init__(self, user_id):
            self.user_id = user_id
        def keep(self):
            self.by_id[self.user_id] = self
        @classmethod
        def get(cls, user_id):
            if user_id in cls.by_id:
                return cls.by_id[user_id]
            user = cls(user_id)
            user.keep()
            return user
    @app.post("/")
    def enter(request):
        return User.get(request.user_id).name
"""
        },
    ),
    "what instances keep that put themselves into a table": (
        "_sent",
        {
            "main": APP
            + """
    known = {}
    class Room:
        def __init__(self, name):
            self.name = name
            self._sent = set()
        def keep(self):
            known[self.name] = self
        def send(self, text):
            self._sent.add(text)
    @app.post("/")
    def enter(request):
        room = known.get(request.room)
        if room is None:
            room = Room(request.room)
            room.keep()
        return room.send(request.text)
"""
        },
    ),
    "what a local instance sees in its own loop": (
        "seen",
        {
            "main": """
    from multiprocessing import Process

    class Runner:
        def __init__(self, queue):
            self.queue = queue
            self.seen = set()
        def run_all(self):
            while True:
                task = self.queue.get()
                if task.task_id in self.seen:
                    continue
                self.seen.add(task.task_id)
                task.run()
    def work(queue):
        runner = Runner(queue)
        runner.run_all()
    def start(queue):
        return Process(target=work, args=(queue,))
"""
        },
    ),
    "instances that put themselves into a map of their class": (
        "known",
        {
            "main": APP
            + """
    class Page:
        known = {}
        def keep(self):
            self.known[self.place] = self
    @app.post("/")
    def enter(request):
        return Page.known.get(request.place)
"""
        },
    ),
    "what the loop of a process sees that is begun for each job": (
        "seen",
        {
            "main": APP
            + """
    from workers import JobProcess

    class Runner:
        def __init__(self, queue):
            self.queue = queue
            self.seen = set()
        def run_all(self):
            while True:
                task = self.queue.get()
                self.seen.add(task.task_id)
                task.run()
    def work(queue):
        runner = Runner(queue)
        runner.run_all()
    @app.post("/")
    def start(request):
        return JobProcess(target=work, args=(request.queue,))
"""
        },
    ),
    "what an instance keeps that start-up lets a loop create": (
        "_seen",
        {
            "main": APP
            + """
    import asyncio
    class Node:
        def __init__(self):
            self._seen = set()
        @classmethod
        async def create(cls):
            return cls()
        def note(self, request):
            self._seen.add(request.text)
    async def begin(app):
        node = await app.run(Node.create)
        app.on("message", node.note)
    if __name__ == "__main__":
        asyncio.run(begin(app))
"""
        },
    ),
}
SAFE: dict[str, Program] = {
    "a value that is given with a key of unknown origin": (
        "limits",
        {
            "main": APP
            + """
    from settings import current

    limits = {}
    @app.post("/")
    def enter(request):
        place = current()
        limits[place] = 10
        return limits[place]
"""
        },
    ),
    "what is seen in the loop of an instance that each event gets": (
        "seen",
        {
            "main": APP
            + """
    class Reader:
        def __init__(self, stream):
            self.stream = stream
            self.seen = set()
        def read_all(self):
            while True:
                line = self.stream.get()
                if line is None:
                    break
                self.seen.add(line.line_id)
    @app.post("/")
    def enter(request):
        reader = Reader(request.stream)
        reader.read_all()
"""
        },
    ),
    "a list that only gets something while it is empty": (
        "history",
        {
            "main": APP
            + """
    history = []
    @app.post("/")
    def enter(request):
        if not history and request.text:
            history.insert(0, request.text)
"""
        },
    ),
}


@pytest.mark.parametrize("case", GROWS)
def test_growth_is_seen_in(case, tmp_path):
    assert reported(tmp_path, GROWS[case])


@pytest.mark.parametrize("case", SAFE)
def test_nothing_is_said_about(case, tmp_path):
    assert not reported(tmp_path, SAFE[case])
