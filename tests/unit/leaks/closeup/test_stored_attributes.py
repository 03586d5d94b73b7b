from __future__ import annotations

import pytest

from floodline.leaks._closeup.closeup import Close
from floodline.leaks._closeup.suspect_line import with_static_line
from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.trend import Trend
from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import ITEM, Slots
from floodline.leaks._objects.outline import Outlines
from soak_programs import module

SOURCE = """
class State:
    def __init__(self):
        super().__setattr__("_state", {})
    def __setattr__(self, name, value):
        self._state[name] = value
    def __getattr__(self, name):
        return self._state[name]

class Plain:
    def __init__(self):
        self._state = {"inbox": [0, 1]}

app, plain = State(), Plain()
app.inbox = []
app._state["alice"] = []

def put(text):
    inbox = app.inbox
    inbox.append(text)
"""


@pytest.fixture
def close(tmp_path, monkeypatch):
    made = module("stateful", SOURCE, tmp_path, monkeypatch)

    def close(name):
        slots = Slots()
        kind = "stateful.State" if name == "app" else "stateful.Plain"
        root = slots.child(slots.root("stateful"), "stateful", f".{name}")
        item = slots.child(slots.child(root, kind, "._state"), "", ITEM)
        one = Candidate(slots[item], "length", Trend("growing", 1.0), 0.0, 3)
        return Close(one, Places(Outlines(), {}).held)

    return made, close


def test_what_a_class_offers_as_an_attribute_is_named_by_it(close):
    made, look = close
    made.put("a")
    found = look("app")
    suspect = with_static_line(found.suspect(1), found)
    assert (suspect.owner, suspect.path) == ("stateful.State.inbox", "stateful.app.inbox")
    lines = SOURCE.splitlines()
    assert lines[suspect.line - 1].strip() == "inbox.append(text)"


def test_other_keys_are_data_and_never_shown(close):
    made, look = close
    assert "inbox" not in look("plain").suspect(1).path
    made.app._state["alice"] += [1, 2, 3]
    assert "alice" not in str(look("app").suspect(1))
    for number in range(100):
        made.app._state[f"key{number}"] = []
    made.app.inbox.extend(range(9))
    assert look("app").suspect(1).owner == "stateful.State._state"
