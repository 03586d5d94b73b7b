"""Where a key comes from: through tuples, inner functions and typed objects; what refuses it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Scan
from floodline.scan._proofs.growth import Paths
from scan_findings import sureness

STORE = """
class Store:
    def __init__(self):
        self.items = {}

    def put(self, name):
        self.items[name] = object()

STORE = Store()

def get_store() -> "Store | None":
    return STORE

async def find_store() -> Store:
    return STORE

def one_store():
    global OTHER
    if OTHER is None:
        OTHER = Store()
    return OTHER

def store_of(key):
    if key not in STORES:
        STORES[key] = Store()
    return STORES[key]
"""


def reported(folder: Path, code: str, store: str = "") -> list[str]:
    (folder / "app.py").write_text(store + dedent(code), encoding="utf-8")
    findings = Scan([folder]).report().findings
    return [f"{f.rule} {f.symbol} {sureness(f)}" for f in findings if f.confidence != "low"]


MADE = {
    "of two things, of which one comes with the event": """
        items = {}

        @app.post("/")
        def enter(name):
            keep(find_tenant(), name)

        def keep(tenant, name):
            key = (tenant, name)
            if key not in items:
                items[key] = object()
    """,
    "of one of two things": """
        items = {}

        @app.post("/")
        def enter(name, other):
            key = name or find_default()
            items[f"{key}!"] = object()
    """,
    "of what the function around has been given": """
        items = {}

        @app.post("/")
        def enter(name):
            def later():
                items[name.lower()] = object()
            later()
    """,
    "of a name of the function around": """
        items = {}

        @app.post("/")
        def enter(request):
            who, what = request.user.id, request.text
            def later():
                items[who, what] = object()
            later()
    """,
}


@pytest.mark.parametrize("case", MADE)
def test_a_key_is_open_that_is_made(case, tmp_path):
    assert reported(tmp_path, MADE[case]) == ["FLD101 app.items certain"]


CALLED = {
    "on what a function returns": "get_store().put(name)",
    "on a local that a function returned": "store = get_store(); store.put(name)",
    "on a local that was waited for": "store = await find_store(); store.put(name)",
    "on what a method returns": "FINDER.store().put(name)",
    "on what a function makes once and keeps": "one_store().put(name)",
    "on what a function makes for each": "store_of(1).put(name)",
    "on an attribute of an object of the module": "FINDER.home.put(name)",
    "on an attribute of an attribute": "FINDER.near.home.put(name)",
    "on an attribute of a parameter": "finder.home.put(name)",
    "on a local that is an attribute of a parameter": "home = finder.home; home.put(name)",
}


@pytest.mark.parametrize("case", CALLED)
def test_a_method_is_found_that_is_called(case, tmp_path):
    code = f"""
        class Near:
            home: Store

        class Finder:
            def __init__(self):
                self.home: Store = STORE
                self.near: Near | None = None

            def store(self) -> Store:
                return self.home

        class Other:
            def put(self, name): ...

        FINDER = Finder()

        @app.post("/")
        async def enter(name, finder: Finder):
            {CALLED[case]}
    """
    assert reported(tmp_path, code, STORE) == ["FLD101 app.Store.items certain"]


REFUSED = {
    "a table that has to have it": """
        items, known = {}, {}

        @app.post("/")
        def enter(chat_id):
            if chat_id not in known:
                raise KeyError(chat_id)
            items[chat_id] = object()
    """,
    "a table that is asked for it": """
        items, known = {}, {}

        @app.post("/")
        def enter(chat_id):
            kind = known[chat_id]
            items[chat_id] = kind()
    """,
    "a call that has to know it": """
        items = {}

        @app.post("/")
        def enter(name):
            items[name] = load(name)
    """,
    "a call that has to know it, asked before": """
        items = {}

        @app.post("/")
        async def enter(name):
            if name not in items:
                found = await client.load(1, name)
                items[name] = found
    """,
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_key_is_perhaps_one_of_a_few_after(case, tmp_path):
    assert reported(tmp_path, REFUSED[case]) == ["FLD101 app.items medium"]


def test_an_item_that_is_replaced_only_where_it_is_makes_nothing_grow(tmp_path):
    code = """
        items = {}

        @app.post("/")
        def enter(name, text):
            if name not in items:
                return False
            items[name] = text
            return True
    """
    assert reported(tmp_path, code) == []


def test_one_reason_of_several_to_leave_refuses_no_key(tmp_path):
    code = """
        items, known = {}, {}

        @app.post("/")
        def enter(name, text):
            if text and name not in known:
                return
            items[name] = text
    """
    assert reported(tmp_path, code) == ["FLD101 app.items certain"]


def test_functions_that_all_call_each_other_are_asked_once_each(tmp_path, monkeypatch):
    asked = []
    given = Paths._given

    def noted(self, key, number, name, depth):
        asked.append((key, number, depth))
        return given(self, key, number, name, depth)

    monkeypatch.setattr(Paths, "_given", noted)
    calls = "".join(f"    step{n}(name)\n" for n in range(12))
    steps = "".join(f"def step{n}(name):\n{calls}\n" for n in range(12))
    code = f"items = {{}}\n\n{steps}\ndef keep(name):\n    items[name] = 1\n\n"
    code += (
        "def first(name):\n    keep(name)\n" + calls + "def step0(name):\n    keep(name)\n" + calls
    )
    assert reported(tmp_path, code) == ["FLD101 app.items medium"]
    assert len(asked) == len(set(asked))
