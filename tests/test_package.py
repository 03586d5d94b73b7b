"""The public surface is pinned here: a change to it is a change to this file."""

from __future__ import annotations

import ast
import configparser
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import floodline
from floodline import errors
from source_figures import (
    complex_functions,
    complexity,
    functions,
    in_cycles,
    loaded_by,
    trees_of,
)

SOURCE = Path(floodline.__file__).parent
ROOT = Path(__file__).parents[1]

PUBLIC = {
    "floodline": [
        "AsyncSessions",
        "Batch",
        "BoundedLog",
        "BoundedMap",
        "Conversation",
        "GCController",
        "MemoryBudget",
        "MemoryTracker",
        "Reason",
        "SessionScope",
        "Sessions",
        "expect_gone",
        "track_memory",
        "watch",
        "why_alive",
    ],
    "floodline.adapters": [],
    "floodline.bounded": [
        "Batch",
        "BoundedLog",
        "BoundedMap",
        "Pressure",
        "Sheds",
    ],
    "floodline.cli": ["main"],
    "floodline.exporters": [
        "METRICS",
        "Metric",
        "PrometheusCollector",
        "instrument_otel",
        "metrics_text",
        "prometheus_app",
    ],
    "floodline.history": [
        "INTERRUPTED",
        "Archive",
        "Conversation",
        "HistoryStats",
        "Message",
        "Page",
        "Problem",
        "Rule",
        "check",
        "estimate",
        "extractive_summary",
        "rules",
        "tiktoken_counter",
        "trim",
    ],
    "floodline.leaks": [
        "Expectations",
        "Live",
        "LiveAnswer",
        "Retainer",
        "Suspect",
        "WhyAlive",
        "check_gone",
        "expect_gone",
        "why_alive",
    ],
    "floodline.memory": [
        "PROBES",
        "AllocationLine",
        "BudgetEvent",
        "BudgetStats",
        "Cgroup",
        "Check",
        "Collection",
        "GCController",
        "GCStats",
        "MemoryBudget",
        "MemoryTracker",
        "Probe",
        "Sample",
        "Span",
        "StageRun",
        "StageStats",
        "TrackerStats",
        "cgroup",
        "default_tracker",
        "measure",
        "rss",
        "track_memory",
        "trim_malloc",
    ],
    "floodline.pytest_plugin": ["SoakWarning"],
    "floodline.recorder": ["Recorder", "Recording", "read_recording", "watch"],
    "floodline.scan": ["RULES", "Audited", "Finding", "Proof", "Report", "Rule", "Scan"],
    "floodline.sessions": [
        "AsyncSessions",
        "AsyncUse",
        "ScopeStats",
        "SessionMap",
        "SessionScope",
        "Sessions",
        "SessionsStats",
        "Use",
    ],
    "floodline.soak": [
        "PROFILES",
        "Answer",
        "Profile",
        "Scenario",
        "Soak",
        "chaos_point",
        "load",
        "run",
    ],
    "floodline.stages": [
        "AutoSummarizingConversationStage",
        "MemoryBoundedStage",
        "StageResult",
    ],
    "floodline.stores": [
        "Append",
        "AsyncRowStore",
        "AsyncStore",
        "Codec",
        "Grant",
        "Held",
        "Kept",
        "LogStats",
        "MemoryStore",
        "NewRow",
        "PostgresStore",
        "Record",
        "RedisStore",
        "Row",
        "RowStore",
        "SQLiteArchive",
        "SQLiteStore",
        "Store",
        "StoreStats",
        "infer_state_type",
        "new_owner",
        "open_store",
        "owner_is_dead",
        "seal",
        "unpack_rows",
        "unseal",
    ],
    "floodline.testing": ["SessionKit"],
    "floodline.verify": [
        "POLICIES",
        "Answer",
        "Claim",
        "Evidence",
        "Judgement",
        "document",
        "load",
        "text",
        "verify",
    ],
    "floodline.web": [
        "FORMATS",
        "Serving",
        "Source",
        "create_app",
        "create_dashboard",
        "make_app",
        "render_report",
        "report_document",
        "serve",
        "snapshot_text",
        "write_report",
    ],
    "floodline.settings": ["Settings", "default", "load", "resolve"],
}


def modules_after(statement: str) -> set[str]:
    """Run a statement in a fresh interpreter and return what it made the interpreter import."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    code = f"import sys, json; before = set(sys.modules); {statement}"
    code += "; print(json.dumps(sorted(set(sys.modules) - before)))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean
    )
    return set(json.loads(run.stdout))


def imported_by(path: Path) -> set[str]:
    """Return what a module imports, except for type checkers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checkers = [node for node in tree.body if ast.unparse(node).startswith("if TYPE_CHECKING")]
    unseen = {part for node in checkers for part in ast.walk(node)}
    roots = set()
    for node in ast.walk(tree):
        if node in unseen:
            continue
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            roots.add(node.module.partition(".")[0])
    return roots


@pytest.mark.parametrize("name", PUBLIC)
def test_the_public_names_are_these(name):
    module = import_module(name)
    assert list(module.__all__) == PUBLIC[name]
    assert [public for public in module.__all__ if not hasattr(module, public)] == []


def test_every_public_package_is_pinned():
    packages = {p.parent.name for p in SOURCE.glob("*/__init__.py")}
    public = {name for name in packages if not name.startswith("_")}
    assert {f"floodline.{name}" for name in public} <= PUBLIC.keys()


def test_import_floodline_is_light():
    loaded = modules_after("import floodline")
    heavy = {"asyncio", "click", "msgspec", "psutil", "rich", "sqlite3", "starlette", "uvicorn"}
    assert not loaded & heavy
    assert {name for name in loaded if name.startswith("floodline.")} == {"floodline._lazy"}


def test_containers_bring_no_third_party_module():
    loaded = modules_after("from floodline import BoundedMap, BoundedLog, Batch, Reason")
    roots = {name.partition(".")[0] for name in loaded}
    assert roots - set(sys.stdlib_module_names) == {"floodline"}


def test_sessions_bring_no_web_server_and_no_command_line():
    loaded = modules_after("from floodline import Sessions, AsyncSessions, Conversation")
    assert not loaded & {"anyio", "attrs", "click", "httpx", "rich", "starlette", "uvicorn"}


def test_exporters_bring_their_libraries_only_when_they_are_used():
    loaded = modules_after("import floodline.exporters")
    assert not {name.partition(".")[0] for name in loaded} & {"opentelemetry", "prometheus_client"}


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Session'"):
        floodline.Session  # noqa: B018  # the access is what is tested


def test_dir_shows_the_public_names_before_they_are_loaded():
    assert set(floodline.__all__) <= set(dir(floodline))


def test_the_version_is_that_of_the_distribution():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert floodline.__version__ == project["version"]


def test_the_package_is_typed():
    assert (SOURCE / "py.typed").is_file()


@pytest.mark.parametrize(
    "path",
    [
        *sorted(SOURCE.glob("bounded/*.py")),
        *sorted(SOURCE.glob("_python/*.py")),
        *(
            SOURCE / f"{name}.py"
            for name in (
                "telemetry",
                "errors",
                "_clock",
                "_session_options",
                "_units",
                "_interruptible_lock",
            )
        ),
        SOURCE / "settings.py",
    ],
    ids=lambda path: path.relative_to(SOURCE).as_posix(),
)
def test_the_low_layers_import_the_standard_library_only(path):
    assert imported_by(path) - set(sys.stdlib_module_names) <= {"floodline"}


def test_modules_stay_readable():
    too_long = {
        path.name: lines
        for path in SOURCE.rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert too_long == {}


def test_folders_stay_readable():
    folders = [path.parent for path in SOURCE.rglob("*.py")]
    too_full = {
        folder.relative_to(SOURCE).as_posix(): modules
        for folder in set(folders)
        if (modules := folders.count(folder)) > 16  # about 15, as docs/design.md says
    }
    assert too_full == {}


def test_functions_stay_readable():
    # spelled out, since they run for every entry that is set and for every object that is met
    hot = {"bounded/_table.py:put", "leaks/_live/walk/sliced_walk.py:push"}
    assert complex_functions(trees_of(SOURCE)).keys() == hot


def test_a_cycle_of_imports_and_every_branch_are_counted():
    loaded = {"p.a": {"p.b.name"}, "p.b": {"p.a"}, "p.c": {"p.a"}, "p.d": {"os"}}
    assert in_cycles(loaded) == {"p.a", "p.b"}
    text = "def f(a, b):\n    return [x for x in a if x and b or not x] if a else b\n"
    (function,) = functions(ast.parse(text))
    assert complexity(function) == 6
    assert loaded_by(ast.parse("if TYPE_CHECKING:\n    import x\nfrom y import z\n")) == {"y.z"}


def pictures():
    """Return the two pictures of docs/design.md: the layers, and the stages of the big packages."""
    return (ROOT / "docs" / "design.md").read_text(encoding="utf-8").split("```")[1:4:2]


def test_the_picture_of_the_layers_shows_all_of_them_in_their_order():
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    layers = contracts["importlinter:contract:layers"]["layers"].split("\n")[1:]
    lines = [line for line in pictures()[0].splitlines() if line.strip() and line[0] != " "]
    assert [line.split("  ")[0] for line in lines] == layers
    there = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    left_out = {"__init__", "__pycache__"}
    assert there - left_out == {name for layer in layers for name in layer.split(" | ")}


def test_the_picture_of_the_stages_names_only_what_exists():
    for package, *stages in (
        re.findall(r"\b\w+\b", line) for line in pictures()[1].splitlines() if line
    ):
        for name in stages:
            found = SOURCE / package / name
            assert name[0] != "_" or found.is_dir() or found.with_suffix(".py").is_file(), name


def test_the_modules_that_the_docs_cite_exist():
    there = {
        f"/{path.relative_to(SOURCE.parent).with_suffix('').as_posix()}"
        for path in SOURCE.rglob("*")
    }
    for page in (ROOT / "docs").rglob("*.md"):
        for cited in re.findall(r"`((?:\w+/)+\w+)(?:\.py)?`", page.read_text(encoding="utf-8")):
            if "_" in {part[0] for part in cited.split("/")}:
                assert any(path.endswith(f"/{cited}") for path in there), f"{page.name}: {cited}"


def test_the_folders_of_the_unit_tests_are_those_of_the_source():
    folders = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    known = {folder.replace("/_", "/").removeprefix("_") for folder in folders}
    unit = ROOT / "tests" / "unit"
    tested = {path.parent.relative_to(unit).as_posix() for path in unit.rglob("test_*.py")}
    assert sorted({folder.replace("/_", "/").removeprefix("_") for folder in tested} - known) == []


def test_no_two_test_files_have_one_name():  # pytest imports them by their names
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_all_errors_are_in_the_drawn_tree_and_below_one_root():
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    assert all(issubclass(kind, errors.FloodlineError) for kind in kinds)
    drawn = errors.__doc__ or ""
    for kind in kinds:
        builtin = [base.__name__ for base in kind.__bases__ if base.__module__ == "builtins"]
        shown = f"{kind.__name__} ({builtin[0]})" if builtin and builtin != ["Exception"] else ""
        assert (shown or kind.__name__) in drawn
