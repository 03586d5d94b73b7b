"""Kinds of growth that hide behind objects of the standard library, each named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import weakref

import pytest

from floodline.soak import Scenario, Soak
from soak_programs import line_of, module, narrow

WAITING = """
import asyncio, contextlib

class Hub:
    def __init__(self):
        self.ready = asyncio.Event()
        self.lock = asyncio.Lock()
        self.inbox = asyncio.Queue()
        self.stack = contextlib.AsyncExitStack()
        self.closed = asyncio.get_running_loop().create_future()
        self.open = []

    async def wait(self):
        await self.ready.wait()                                # feeds ready

    async def use(self):
        async with self.lock:                                  # feeds lock
            pass

    async def connect(self, i):
        self.inbox.put_nowait([i])                             # feeds inbox
        await self.stack.enter_async_context(link(i))          # feeds stack
        self.closed.add_done_callback(lambda done: i)          # feeds closed
        rows = read(i)
        await anext(rows)
        self.open.append(rows)                                 # feeds open

@contextlib.asynccontextmanager
async def link(i):
    yield [i]

async def read(i):
    while True:
        yield [i]

async def serve(jobs):
    async with asyncio.TaskGroup() as group:
        while True:
            work = await jobs.get()
            group.create_task(work())                          # feeds group

def arm(i):
    for _ in range(3):
        asyncio.get_running_loop().call_later(3600, print, i)  # feeds timers

async def setup():
    global HUB, JOBS, SERVER
    HUB, JOBS = Hub(), asyncio.Queue()
    await HUB.lock.acquire()
    SERVER = asyncio.ensure_future(serve(JOBS))

async def round(i):
    asyncio.ensure_future(HUB.use())
    JOBS.put_nowait(HUB.wait)
    await HUB.connect(i)
    arm(i)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
"""

HELD = """
import contextlib, contextvars, queue, weakref

SPANS = contextvars.ContextVar("spans")
TRAIL = contextvars.ContextVar("trail", default=())

class App:
    def __init__(self):
        self.inbox = queue.Queue()
        self.direct = queue.SimpleQueue()
        self.stack = contextlib.ExitStack()
        self.cursors = {}

    def handle(self, i):
        self.inbox.put([i])                       # feeds inbox
        self.direct.put([i])                      # feeds direct
        self.stack.callback(repr, [i])            # feeds stack
        rows = self.cursors[i] = read(i)          # feeds cursors
        next(rows)

def read(i):
    while True:
        yield [i]

def trace(i):
    SPANS.get().append([i])                       # feeds SPANS
    TRAIL.set((*TRAIL.get(), [i]))                # feeds TRAIL

def make():
    seen = ()
    def note(i):
        nonlocal seen
        seen = seen + ([i],)                      # feeds seen
    return note

APP, NOTE = App(), make()

def setup():
    SPANS.set([])

def round(i):
    APP.handle(i)
    trace(i)
    NOTE(i)
    for _ in range(3):
        weakref.finalize(APP, repr, i)            # feeds finalizers
"""

CHAINS = """
class App:
    def __init__(self):
        self.handler, self.stream, self.failure = print, iter(()), None

    def use(self):
        inner = self.handler
        def wrapped(x):
            return inner(x)
        self.handler = wrapped                    # feeds handler

    def pipe(self):
        self.stream = follow(self.stream)         # feeds stream

    def call(self):
        try:
            raise ValueError
        except ValueError as error:
            error.__context__ = self.failure
            self.failure = error                  # feeds failure

def follow(source):
    yield from source

APP = App()

def round(i):
    APP.use()
    APP.pipe()
    APP.call()
"""

HOOKS = """
import atexit, os, threading
from atexit import register  # so that the function has another name, too

class Lock:
    def __init__(self):
        for _ in range(3):
            os.register_at_fork(after_in_child=self.reset)     # feeds forks

    def reset(self):
        pass

def remove(file):
    pass

def renew(i):
    timer = threading.Timer(3600, print, [i])
    timer.daemon = True
    timer.start()

def round(i):
    Lock()
    atexit.register(remove, [i])                  # feeds exits
    atexit.register(remove, [i])
    renew(i)

def teardown():
    atexit.unregister(remove)
"""


BUFFERS = """
import array, collections, functools, io, xml.etree.ElementTree as tree

class Registry(collections.UserDict):
    pass

class Bag:
    pass

class Desk:
    def __init__(self):
        self.numbers = array.array("d")
        self.sink = io.BytesIO()
        self.text = io.StringIO()
        self.root = tree.Element("root")

    @staticmethod                            # feeds look_up
    @functools.cache
    def look_up(i):
        return [i]

def extend(i):
    DESK.numbers.extend([1.0] * 50)          # feeds numbers
    DESK.sink.write(b"0123456789" * 40)      # feeds sink
    DESK.text.write("0123456789" * 40)       # feeds text
    tree.SubElement(DESK.root, "row")        # feeds root

def mark(i):
    setattr(BAG, "key%d" % i, [i])           # feeds bag
    TABLE[i] = [i]                           # feeds table

DESK, BAG, TABLE = Desk(), Bag(), Registry()

def round(i):
    extend(i)
    mark(i)
    Desk.look_up(i)
"""
REPLACED = """
import itertools

class Chat:
    turns = ()
    __slots__ = ("views",)

    def __init__(self):
        self.views = []

    @classmethod
    def say(cls, i):
        cls.turns = (*cls.turns, [i])            # feeds turns

    def view(self, i):
        self.views = self.views + [[i]]          # feeds views

def make():
    log = []
    def note(i):
        nonlocal log
        log = log + [[i]]                        # feeds log
    return note

def rows():
    while True:
        yield [0]

def other():
    trail = []
    trail.append(1)

def follow():
    trail = ()
    left, right = itertools.tee(rows())
    while True:
        trail = trail + ([(yield)],)             # feeds trail
        yield next(left)                         # feeds left

NOTE, CHAT, FOLLOW = make(), Chat(), follow()

def round(i):
    Chat.say(i)
    CHAT.view(i)
    NOTE(i)
    next(FOLLOW)
    FOLLOW.send(i)
"""
FILLS = """
import queue

class Desk:
    def __init__(self):
        self.chats = {n: [] for n in range(5)}
        self.batch = []
        self.inbox = queue.Queue(5000)

    def say(self, i):
        turns = self.chats[i % 5]
        turns.append([i])
        if len(turns) > 240:
            del turns[:12]
        self.batch.append([i])
        if i % 400 == 399:
            self.batch.clear()
        self.inbox.put([i])

DESK = Desk()

def round(i):
    DESK.say(i)
"""
RING = """
RING = [None] * 100

def round(i):
    RING[i % 100] = [i]
"""
DRIVER = """
import json, sys, weakref
from pathlib import Path
from types import SimpleNamespace
from soak_programs import narrow
from floodline.soak import Soak, load

answers = {}
for name in sys.argv[1:]:
    scene = load(Path(name))
    if answers:  # after the first one, which needs all there is
        narrow(SimpleNamespace(setattr=setattr), sys.modules[Path(name).stem], weakref)
    answers[Path(name).stem] = Soak(scene, rounds=40, budget=0).run().as_dict()
print(json.dumps(answers))
"""
PROGRAMS = {
    "hooks": HOOKS,
    "waiting": WAITING,
    "held": HELD,
    "chains": CHAINS,
    "buffers": BUFFERS,
    "replaced": REPLACED,
    "fills": FILLS,
    "ring": RING,
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Soak all programs in one process that no coverage run traces, for the sake of the lines."""
    folder = tmp_path_factory.mktemp("kinds")
    for name, source in PROGRAMS.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    clean["PYTHONPATH"] = os.pathsep.join(sys.path)
    run = subprocess.run(
        [sys.executable, "-c", DRIVER, *(str(folder / f"{name}.py") for name in PROGRAMS)],
        capture_output=True, text=True, check=False, env=clean, timeout=250,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def lines_of(answer):
    assert answer["verdict"] == "growing", answer
    return {one["owner"]: one["line"] for one in answer["suspects"]}


def test_what_waits_on_an_event_loop_is_named(answers):
    lines = lines_of(answers["waiting"])
    for name in ("ready", "lock", "inbox", "stack", "closed", "open"):
        assert lines[f"waiting.Hub.{name}"] == line_of(WAITING, f"# feeds {name}")
    assert lines["waiting.serve()group"] == line_of(WAITING, "# feeds group")
    timers = "asyncio.base_events.BaseEventLoop._scheduled"
    assert lines[timers] == line_of(WAITING, "# feeds timers")
    held = {one["owner"]: one["holds"] for one in answers["waiting"]["suspects"]}
    assert "TimerHandle" in held[timers]


def test_what_queues_stacks_contexts_and_cells_hold_is_named(answers):
    lines = lines_of(answers["held"])
    for name in ("inbox", "stack", "cursors"):
        assert lines[f"held.App.{name}"] == line_of(HELD, f"# feeds {name}")
    for name in ("SPANS", "TRAIL"):
        assert lines[f"held.{name}"] == line_of(HELD, f"# feeds {name}")
    assert lines["held.make.<locals>.note{seen}"] == line_of(HELD, "# feeds seen")
    assert lines["weakref.finalize._registry"] == line_of(HELD, "# feeds finalizers")


def test_chains_of_cells_generators_and_errors_are_named_by_what_holds_them(answers):
    lines = lines_of(answers["chains"])
    for name in ("handler", "stream", "failure"):
        assert lines[f"chains.App.{name}"] == line_of(CHAINS, f"# feeds {name}")


def test_buffers_and_what_is_used_like_a_dict_are_named(answers):
    lines = lines_of(answers["buffers"])
    for name in ("numbers", "sink", "text", "root", "look_up"):
        assert lines[f"buffers.Desk.{name}"] == line_of(BUFFERS, f"# feeds {name}")
    assert lines["buffers.BAG"] == line_of(BUFFERS, "# feeds bag")
    assert lines["buffers.TABLE"] == line_of(BUFFERS, "# feeds table")


def test_what_is_replaced_by_a_longer_one_shows_its_line(answers):
    lines = lines_of(answers["replaced"])
    for name in ("turns", "views"):
        assert lines[f"replaced.Chat.{name}"] == line_of(REPLACED, f"# feeds {name}")
    assert lines["replaced.make.<locals>.note{log}"] == line_of(REPLACED, "# feeds log")
    assert lines["replaced.follow()trail"] == line_of(REPLACED, "# feeds trail")


def test_what_its_code_or_its_holder_limits_is_undecided_until_it_is_full(answers):
    fills, ring = answers["fills"], answers["ring"]
    assert (fills["verdict"], ring["verdict"]) == ("undecided", "undecided"), (fills, ring)
    owners = {one["owner"] for one in fills["suspects"]}
    assert owners == {f"fills.Desk.{name}" for name in ("chats", "batch", "inbox")}
    assert "ring.RING is filling towards a cap: full at 100" in ring["needed"]["why"]


def test_hooks_of_the_interpreter_are_named(answers):
    lines = lines_of(answers["hooks"])
    assert lines["<held by the interpreter> hooks.Lock.reset"] == line_of(HOOKS, "# feeds forks")
    # the two lines that feed it take turns
    assert lines["atexit.register"] - line_of(HOOKS, "# feeds exits") in (0, 1)
    held = {one["owner"]: one["holds"] for one in answers["hooks"]["suspects"]}
    assert "Timer" in held["threading._active"]


@pytest.mark.parametrize("name", ["waiting", "held", "chains"])
def test_the_names_are_the_same_in_a_process_that_is_traced(name, answers, tmp_path, monkeypatch):
    made = module(name, PROGRAMS[name], tmp_path, monkeypatch)
    narrow(monkeypatch, made, weakref)
    found = Soak(Scenario(made.round, *_setup(made)), rounds=40, budget=0).run()
    wanted = {owner for owner in lines_of(answers[name]) if owner.startswith(name)}
    assert {one.owner for one in found.suspects if one.owner.startswith(name)} == wanted


def _setup(made):
    return [made.setup] if hasattr(made, "setup") else []
