"""Programs to soak, and a way to run them in an interpreter of their own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from floodline.leaks._heap import roots
from floodline.soak import _run, _sampler

MANY = """
import collections, contextvars, functools, threading, weakref

class Service:
    shared = []
    def __init__(self):
        self.by_id = {}
        self.seen = set()
        self.turns = []
        self.transcript = bytearray()
        self.head = None
    def get(self, i):
        self.by_id[i] = {"n": i}                      # feeds by_id
    def see(self, i):
        self.seen.add((i,))
    def say(self, i):
        self.turns = self.turns + ["turn %d" % i]
    def write(self, i):
        self.transcript += b"0123456789" * 40
    @classmethod
    def share(cls, i):
        cls.shared.append([i])

class Chat:
    __slots__ = ("events",)
    def __init__(self):
        self.events = []

class Key:
    pass

class Holder:
    def __init__(self, key):
        self.key = key

CHATS = {n: Chat() for n in range(50)}
TOKENS = {}
BY_KEY = weakref.WeakKeyDictionary()
SERVICE = Service()

def make_counter():
    rows = []
    def count(i):
        rows.append([i])
    return count

COUNT = make_counter()

@functools.lru_cache(maxsize=None)
def cached(i):
    return [i]

def worker():
    backlog = []
    while True:
        got = yield
        backlog.append([got])

WORKER = worker()
next(WORKER)

def round(i):
    SERVICE.get(i)
    SERVICE.see(i)
    SERVICE.say(i)
    SERVICE.write(i)
    Service.share(i)
    CHATS[i % 50].events.append("e%d" % i)
    TOKENS["t%d" % i] = i
    key = Key()
    BY_KEY[key] = Holder(key)
    COUNT(i)
    cached(i)
    WORKER.send(i)
"""

CHAIN = """
class Node:
    __slots__ = ("next",)
    def __init__(self, next):
        self.next = next

class Stack:
    def __init__(self):
        self.head = None
    def push(self):
        self.head = Node(self.head)

STACK = Stack()

def round(i):
    STACK.push()
    STACK.push()
"""

CALM = """
import asyncio, collections, random

class World:
    def __init__(self):
        self.recent = collections.deque(maxlen=10)
        self.saw = []
        self.sessions = {}
        self.catalogue = {i: [i, str(i)] for i in range(500)}

WORLD = World()
DICE = random.Random(1)

async def setup():
    await asyncio.sleep(0)

async def round(i):
    WORLD.recent.append([i])
    WORLD.saw.append([i])
    if len(WORLD.saw) >= 7:
        WORLD.saw.clear()
    WORLD.sessions[i] = [i]
    WORLD.sessions.pop(i - 5, None)
    await asyncio.gather(*[asyncio.sleep(0) for _ in range(3)])

async def teardown():
    WORLD.sessions.clear()
"""

FILLING = """
class Cache:
    limit = 100000
    def __init__(self):
        self.rows = {}
    def put(self, i):
        self.rows[i] = [i]
        if len(self.rows) > self.limit:
            self.rows.popitem()

CACHE = Cache()

def round(i):
    CACHE.put(i)
"""

THREAD_LOCAL = """
import concurrent.futures, threading

TRACE = threading.local()
POOL = concurrent.futures.ThreadPoolExecutor(1)

def handle(i):
    if not hasattr(TRACE, "spans"):
        TRACE.spans = []
    TRACE.spans.append([i])

def round(i):
    POOL.submit(handle, i).result()

def teardown():
    POOL.shutdown()
"""

TASKS = """
import asyncio

KEPT = set()

async def work(n):
    await asyncio.sleep(0)
    return [n]

async def round(i):
    KEPT.add(asyncio.ensure_future(work(i)))
    await asyncio.sleep(0)
"""

MALLOC = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

def round(i):
    libc.memset(libc.malloc(20000), 1, 20000)
"""

MAPPED = """
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

def round(i):
    libc.memset(libc.mmap(None, 65536, 3, 0x22, -1, 0), 1, 65536)
"""

FRAGMENTED = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

def take(size):
    block = libc.malloc(size)
    libc.memset(block, 1, size)
    return block

M_MMAP_THRESHOLD = -3
libc.mallopt(M_MMAP_THRESHOLD, 128 * 1024)  # else it rises with what start-up frees
RESERVE = [take(20 * (8048 + 32 * i)) for i in range(130)]

def round(i):
    # holes between pins, all too small for the next round; as much leaves as stays
    libc.free(RESERVE[i])
    holes = []
    for _ in range(20):
        holes.append(take(8000 + 32 * i))
        take(8032 + 32 * i)
    for block in holes:
        libc.free(block)
"""


def soak(folder: Path, source: str, *options: str, name: str = "program") -> dict[str, Any]:
    """Soak a program in a child, without the tracer of a coverage run, and return the record."""
    file = folder / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    out = folder / "answer.json"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")}
    command = [sys.executable, "-m", "floodline", "soak", str(file), "--json", str(out), *options]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env=clean, timeout=600
    )
    record: dict[str, Any] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    return {**record, "exit": run.returncode, "text": run.stdout, "said": run.stderr}


def line_of(source: str, part: str) -> int:
    """Return the first line that has this text."""
    return next(n for n, line in enumerate(source.splitlines(), 1) if part in line)


HOSTILE = """
class Lies:
    ran = []
    def __len__(self):
        Lies.ran.append("len"); return 10**9
    def __getattr__(self, name):
        Lies.ran.append("getattr"); raise RuntimeError
    def __getattribute__(self, name):
        Lies.ran.append("getattribute"); raise RuntimeError
    def __iter__(self):
        Lies.ran.append("iter"); return iter(())
    def __eq__(self, other):
        Lies.ran.append("eq"); return True
    def __hash__(self):
        Lies.ran.append("hash"); return 1
    def __sizeof__(self):
        Lies.ran.append("sizeof"); return 1
    __class__ = property(lambda self: Lies.ran.append("class"))

class Meta(type):
    def __hash__(cls):
        Lies.ran.append("meta hash"); return 7
    def __eq__(cls, other):
        Lies.ran.append("meta eq"); return True
    def __getattribute__(cls, name):
        Lies.ran.append("meta getattribute"); return type.__getattribute__(cls, name)

class LyingList(list, metaclass=Meta):
    def __len__(self):
        Lies.ran.append("list len"); return 0
    def __iter__(self):
        Lies.ran.append("list iter"); return iter(())

class LyingDict(dict):
    def __len__(self):
        Lies.ran.append("dict len"); return 0
    def keys(self):
        Lies.ran.append("keys"); return ()
    values = items = __iter__ = keys

ONE = Lies()
TWO = LyingList([[1], [2], [3]])
THREE = LyingDict(a=[1])
object.__getattribute__(ONE, "__dict__")["kept"] = [1, 2]
Lies.ran.clear()
"""


def lengths(walk: Any, column: str = "length") -> dict[str, int]:
    values = getattr(walk, column)
    return {s.key: values[s.index] for s in walk.slots if s.index < len(values)}


def module(name: str, source: str, folder: Path, monkeypatch: Any) -> Any:
    """Import a program from a file, under a name that ends with the test."""
    file = folder / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, made)
    spec.loader.exec_module(made)
    return made


def narrow(monkeypatch: Any, *modules: Any) -> None:
    """Let walks begin at these modules alone, for the sake of speed."""

    def push(walk: Any) -> None:
        for one in modules:
            walk.push(one, walk.slots.root(one.__name__))

    monkeypatch.setattr(roots, "_modules", push)
    monkeypatch.setattr(roots, "_orphans", lambda walk: None)
    monkeypatch.setattr(roots, "_frames", lambda walk: None)
    monkeypatch.setattr(_run, "gc", SimpleNamespace(collect=lambda: 0))
    numbers = count()  # no two alike: each sample has its walk
    monkeypatch.setattr(_sampler, "take_census", lambda: (0, next(numbers)))
