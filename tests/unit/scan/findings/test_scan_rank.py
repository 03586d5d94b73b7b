"""The rank of a finding: structure refutes, everything else ranks, and names only rank."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Finding, Scan
from floodline.scan._findings import weights
from floodline.scan._findings.features import Features, word
from floodline.scan._findings.ranking import level_of, rank_in_program, usual_rank

ROOT = Path(__file__).parents[4]


def found(tmp_path: Path, code: str, name: str = "app.py") -> dict[str, Finding]:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(code), encoding="utf-8")
    findings = Scan([tmp_path]).report().findings
    return {finding.symbol.rpartition(".")[2]: finding for finding in findings}


REFUTES_NOTHING = {
    "a clean-up that nothing calls": (
        """
        results = {}

        def run(task):
            results[task.task_id] = object()

        def forget_all():
            results.clear()
        """,
        "FLD103",
    ),
    "an attribute of that name of an unknown object": (
        """
        class Queue:
            def __init__(self):
                self.waiting = {}

            def put(self, job_id):
                self.waiting[job_id] = object()

        class Other:
            def __init__(self):
                self.waiting = {}

        queue = Queue()

        def turn(other, job_id):
            queue.put(job_id)
            other.waiting.clear()
        """,
        "FLD101",
    ),
    "a method of that name of another class": (
        """
        class Store:
            def __init__(self):
                self.waiting = {}

            def put(self, job_id):
                self.waiting[job_id] = object()

            def expunge(self):
                self.waiting.clear()

        class Other:
            def expunge(self):
                pass

        store = Store()

        def turn(other, job_id):
            store.put(job_id)
            other.expunge()
        """,
        "FLD101",
    ),
    "a reload of what was saved": (
        """
        import json

        class Store:
            def __init__(self):
                self.waiting = {}

            def put(self, job_id):
                self.waiting[job_id] = object()

            def load(self, path):
                self.waiting = json.loads(path.read_text())

        store = Store()

        def turn(path, job_id):
            store.put(job_id)
            store.load(path)
        """,
        "FLD101",
    ),
    "a protocol above": (
        """
        from typing import Protocol

        class Saves(Protocol):
            pass

        class Store(Saves):
            def __init__(self):
                self.waiting = {}

            def put(self, job_id):
                self.waiting[job_id] = object()

        store = Store()
        """,
        "FLD101",
    ),
}


@pytest.mark.parametrize("case", REFUTES_NOTHING)
def test_a_finding_is_not_refuted_by(case, tmp_path):
    code, rule = REFUTES_NOTHING[case]
    [finding] = found(tmp_path, code).values()
    assert (finding.rule, finding.rank >= weights.MEDIUM) == (rule, True)


def test_what_is_called_where_it_grows_still_refutes(tmp_path):
    code = REFUTES_NOTHING["a clean-up that nothing calls"][0]
    assert found(tmp_path, code.replace("= object()", "= object()\n            forget_all()")) == {}


HELD = """
    class Store:
        def __init__(self):
            self.items = {}

        def put(self, user_id):
            self.items[user_id] = object()

"""
KEPT = {
    "a factory whose caller keeps it": "def make():\n    return Store()\nstore = make()",
    "a factory of a factory": (
        "def make():\n    return Store()\ndef get():\n    return make()\nstore = get()"
    ),
    "an attribute of what the module keeps": (
        "class App:\n    def __init__(self, given=None):\n        self.store = given or Store()\n"
        "app = App()"
    ),
    "an attribute that is made when it is first needed": (
        "class App:\n    def put(self, user_id):\n        if self.store is None:\n"
        "            self.store = Store()\n        self.store.put(user_id)\napp = App()"
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_an_instance_is_followed_to(case, tmp_path):
    [finding] = found(tmp_path, dedent(HELD) + KEPT[case]).values()
    assert finding.proofs[0].state == "proved"


NOT_KNOWN = {
    "only a default": "def put(user_id, given=None):\n    store = given or Store()\n"
    "    store.put(user_id)",
    "renewed by each run": (
        "class App:\n    def renew(self):\n        self.store = Store()\napp = App()"
    ),
    "added to something": "def fill(stores):\n    stores.append(Store())",
}


@pytest.mark.parametrize("case", NOT_KNOWN)
def test_nobody_knows_how_long_an_instance_lives_that_is(case, tmp_path):
    [finding] = found(tmp_path, dedent(HELD) + NOT_KNOWN[case]).values()
    assert finding.proofs[0].state == "unknown"


def test_a_block_that_is_left_ends_what_its_object_holds(tmp_path):
    group = HELD + (
        "        def __enter__(self):\n            return self\n\n"
        "        def __exit__(self, *error):\n            pass\n"
    )
    plain, scoped = found(tmp_path, HELD)["items"], found(tmp_path, group)["items"]
    assert scoped.rank < plain.rank
    assert scoped.confidence == "low"


def test_a_module_keeps_what_an_instance_names_too(tmp_path):
    code = """
        ALL = {}

        class Service:
            def __init__(self):
                self.known = ALL

            def add(self, user_id):
                self.known[user_id] = object()
    """
    [finding] = found(tmp_path, code).values()
    assert (finding.symbol, finding.proofs[0].state) == ("app.ALL", "proved")


KEYS = {
    "a time": ("datetime.now().timestamp()", "proved"),
    "what is taken from a queue": ("self.waiting.pop().id", "assumed"),
    "what a method makes of it": ("self._extract(given)", "assumed"),
    "a member of an enum": ("kind.value", None),
    "a constant that has another name": ("told.value", None),
}


@pytest.mark.parametrize("case", KEYS)
def test_a_key_is_followed_through(case, tmp_path):
    key, state = KEYS[case]
    code = f"""
        from datetime import datetime
        from enum import Enum

        class Kind(Enum):
            A = 1

        FIRST = Kind.A

        class Service:
            def __init__(self, waiting):
                self.known = {{}}
                self.waiting = waiting

            def add(self, given, kind: Kind):
                told = FIRST
                self.known[{key}] = object()

        service = Service([])
    """
    told = found(tmp_path, code)
    assert [f.proofs[2].state for f in told.values()] == ([state] if state else [])


def test_entries_that_make_room_for_others_are_not_removed_too_late(tmp_path):
    code = """
        from datetime import datetime

        cache, stamps = {}, {}

        def read(agent_id):
            if datetime.now() - stamps.get(agent_id, 0) < 5:
                return cache[agent_id]
            if len(cache) >= 20:
                oldest = min(stamps, key=stamps.get)
                del cache[oldest]
                del stamps[oldest]
            cache[agent_id] = object()
            stamps[agent_id] = datetime.now()
    """
    assert found(tmp_path, code) == {}


def test_lists_that_a_default_bounds_do_not_grow(tmp_path):
    code = """
        from collections import defaultdict, deque

        recent = defaultdict(lambda: deque(maxlen={}))

        def note(text):
            recent["all"].append(text)
    """
    assert found(tmp_path, code.format(50)) == {}
    assert list(found(tmp_path, code.format(None))) == ["recent"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [("user_id", "who"), ("camera_id", "id"), ("task.taskId", "id"), ("str(session.uuid)", "who"),
     ("event.from_user.id", "who"), ("userid", "who"), ("item.id", "id"), ("uid", "who"),
     ("nick", "who"), ("shard_id, user_id", "who"), ("key", "other"),
     ("model_name", "kind"), ("row['type']", "kind"), ("1", "other")],
)  # fmt: skip
def test_the_name_of_a_key_looks_like(text, kind):
    assert word(text) == kind


def test_a_name_only_ranks(tmp_path):
    code = """
        known = {{}}

        def add({0}):
            known[{0}] = object()
    """
    ranks = [
        found(tmp_path, code.format(name))["known"].rank
        for name in ("user_id", "camera_id", "it", "type_name")
    ]
    assert ranks == sorted(ranks, reverse=True)
    assert len(set(ranks)) == 4


def test_a_command_line_ranks_low(tmp_path):
    code = "known = {}\ndef add(user_id):\n    known[user_id] = object()\n"
    assert found(tmp_path, code, name="commands/tool.py")["known"].confidence == "low"


def test_levels_are_cuts_of_the_rank():
    for rank, level in ((0, "low"), (weights.MEDIUM, "medium"), (weights.HIGH, "high")):
        assert level_of(rank) == level
    for level in ("low", "medium", "high"):
        assert level_of(usual_rank(level)) == level


def refitting():
    path = ROOT / "benchmarks" / "scan_precision" / "refit.py"
    spec = importlib.util.spec_from_file_location("refit", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_the_one_that_the_labels_give_and_ranks_no_worse():
    refit = refitting()
    data = refit.rows()
    fitted = refit.fitted(data)
    assert refit.table(refit.anchored(data, fitted)) == refit.TABLE.read_text(encoding="utf-8")
    assert refit.auc(refit.left_out(data, fitted)) > 0.70


@pytest.mark.parametrize(("what", "level"), [("work", "medium"), ("value", "low")])
def test_a_lock_for_each_key_is_no_setting(what, level):
    known = Features("kept", "uncalled", "derived", "kind", "none", "none", what, "some")
    assert level_of(rank_in_program(known)) == level
