"""Facts are written for the cache and come back as they were, types included."""

from __future__ import annotations

import pickle

import pytest

from floodline.scan._facts.records import Struct
from floodline.scan._frontends.python.reader import read
from floodline.scan._sources.comments import comments
from floodline.scan._sources.encoding import pack_facts, unpack_facts

SOURCE = '''
import time
from weakref import WeakKeyDictionary
from other import Client

shared = {}
client = Client()
count = 0


class Jobs:
    """Keeps everything."""

    names: list = []  # floodline: bounded[by hand]

    def __init__(self, bus):
        self.jobs = {}
        self.alias = shared
        bus.add_listener("done", self.finish)

    def add(self, user, *, kind="plain"):
        global count
        count += 1
        if user.id not in self.jobs:
            self.jobs[user.id, kind] = open(user.name)
        for item in Jobs(user):
            self.jobs.setdefault(item, time.time())
        return lambda key: shared.pop(key, self.jobs)

    def finish(self, event):
        if event.kind == "gone" and len(self.jobs) > 3:
            self.jobs.pop(event.id)
        while True:
            client.session.state.jobs[event.id] = event.get(user=event, then=self.add)
            self.names.append(self.jobs[event.id][1:])
'''


def parts(value):
    yield value
    inside = value.__reduce__()[1] if isinstance(value, Struct) else value
    for part in inside if isinstance(inside, (tuple, frozenset)) else ():
        yield from parts(part)


def test_facts_come_back_as_they_were_with_their_types():
    facts = read(SOURCE, "app.py", "app")
    notes = comments("app.py", SOURCE)
    back, written = unpack_facts(pack_facts(facts, notes), "app.py", "app")
    assert back == facts
    assert written == notes
    for name in facts._fields:
        before, after = (
            sorted(str(type(part)) for part in parts(getattr(one, name))) for one in (facts, back)
        )
        assert before == after, name


def test_what_facts_share_is_written_once():
    one = "def f(user):\n    cache.users[user.name] = 1\n"
    several = one + "    cache.users[user.name] = 1\n" * 100
    short, long = (len(pack_facts(read(text, "a.py", "a"), [])) for text in (one, several))
    assert long - short < 100 * 80


def test_facts_of_an_empty_file_come_back():
    facts = read("", "app.py", "app")
    assert unpack_facts(pack_facts(facts, []), "app.py", "app") == (facts, [])


def test_facts_of_a_large_file_come_back():
    lines = [
        f"m{n}.a{n}.b{n}.c[f(x{n}.y.z{n}, w{n}.v{n})] = x{n}.g(a{n}.b{n}())" for n in range(400)
    ]
    text = "def handle({}):\n    {}\n".format(
        ", ".join(f"x{n}" for n in range(400)), "\n    ".join(lines)
    )
    facts = read(text, "app.py", "app")
    assert unpack_facts(pack_facts(facts, []), "app.py", "app") == (facts, [])


class Command:
    def __reduce__(self):
        return print, ("run by a cache",)


@pytest.mark.parametrize(
    "data", [b"", b"\x80", pickle.dumps(Command()), pickle.dumps([1]), pickle.dumps(({}, 3))]
)
def test_anything_but_facts_is_refused_and_nothing_in_it_runs(data, capsys):
    with pytest.raises(ValueError, match="these facts are damaged"):
        unpack_facts(data, "app.py", "app")
    assert capsys.readouterr().out == ""
