"""What the documentation shows, works; what exists, is documented."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

import floodline
import tutorial
from floodline import errors
from floodline.cli._main import COMMANDS, group

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "adapters").glob("*.md")),
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
]
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
SEMANTICS = (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")
RULE = re.compile(r"\[([EMSTH][0-9]{1,2})\]")
PACKAGES = [
    "bounded",
    "exporters",
    "history",
    "memory",
    "recorder",
    "scan",
    "sessions",
    "settings",
    "stages",
    "stores",
    "verify",
    "web",
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_INSTALLED = re.compile(
    r"^(?:Import|ModuleNotFound)Error: (.*(?:floodline\[|No module named).*)$", re.MULTILINE
)
FENCED = re.compile(r"^ *```([^\n]*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"^ *(?:\$ )?(?:\w+=\S+ )*floodline ([a-z].*)$", re.MULTILINE)
LINK = re.compile(r"(?:\]\(|src=\")(?!https?:|mailto:)([^)#\"]+)")


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def entry(name: str) -> str:
    found = re.search(rf"^### `{name}\b.*?(?=^##|\Z)", REFERENCE, re.DOTALL | re.MULTILINE)
    return found[0] if found else ""


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    program = ""
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        program += "\n" * (line - program.count("\n")) + block[1]
    if program:  # in a process of its own, as a reader would: other tests leave things alive
        file = tmp_path / f"page_{page.stem}.py"  # not the name of a framework
        file.write_text(program, encoding="utf-8")
        command = [sys.executable, str(file)]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        if "floodline.adapters" in program and (missing := NOT_INSTALLED.search(ran.stderr)):
            pytest.skip(missing[1])
        assert ran.returncode == 0, ran.stderr


def test_every_command_line_that_is_shown_has_options_that_exist():
    pages = {*PAGES, *(ROOT / "docs").rglob("*.md")}
    blocks = [found for page in pages for found in FENCED.findall(page.read_text(encoding="utf-8"))]
    lines = [
        line
        for language, text in blocks
        if language in ("", "sh", "console")
        for line in SHOWN.findall(text)
    ]
    assert len(lines) > 80
    for line in lines:
        words = re.split(r" [|&>]| 2>", line)[0]
        parse(group, shlex.split(words, comments=True))


def parse(command: click.Command, words: list[str]) -> None:
    """Raise `click.UsageError` for an unknown command or option."""
    context = click.Context(command, info_name=command.name)
    if isinstance(command, click.Group):
        parse(command.resolve_command(context, words)[1] or command, words[1:])
    else:
        command.make_parser(context).parse_args(words)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_links_of_a_page_lead_somewhere(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_site_has_every_page_and_no_broken_link(tmp_path):
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "dummy"]
    built = subprocess.run(
        [*command, str(ROOT / "docs"), str(tmp_path / "site")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (built.returncode, built.stderr) == (0, "")


def test_the_tutorial_prints_what_it_shows(tmp_path):
    page = tutorial.PAGE.read_text(encoding="utf-8")
    assert tutorial.differences(page, tmp_path) == []


def test_the_time_that_the_tutorial_takes_makes_no_difference():
    short, long = "1 passed in 50.17s\n", "1 passed in 83.05s (0:01:23)\n"
    assert tutorial.masked(short) == tutorial.masked(long)


def test_the_tutorial_names_each_file_before_it_shows_it():
    page = tutorial.PAGE.read_text(encoding="utf-8")
    for block in tutorial.BLOCK.finditer(page):
        if block["file"]:
            before = page[: block.start()].rstrip().rpartition("\n\n")[2]
            assert f"`{block['file']}`" in before


def shown(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if default is inspect.Parameter.empty:
        return parameter.name
    written = getattr(default, "__name__", None) or repr(default).replace("'", '"')
    return f"{parameter.name}={written}"


@pytest.mark.parametrize("name", [name for name in floodline.__all__ if name != "Reason"])
def test_a_public_name_has_an_entry_with_its_signature(name):
    signature = inspect.signature(getattr(floodline, name))
    heading = entry(name).partition("\n")[0]
    missing = [p.name for p in signature.parameters.values() if shown(p) not in heading]
    assert (bool(heading), missing) == (True, [])


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_is_in_the_reference(package):
    names = import_module(f"floodline.{package}").__all__
    assert [name for name in names if f"`{name}" not in REFERENCE] == []


def test_every_error_is_in_the_reference():
    names = [name for name, kind in vars(errors).items() if inspect.isclass(kind)]
    assert [name for name in names if f"`{name}`" not in REFERENCE] == []


def test_every_reason_is_in_the_reference():
    assert [r for r in floodline.Reason if f"`{r}`" not in entry("Reason")] == []


def test_the_first_screen_of_the_readme_is_in_order():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("run", "test", "docs"):
        assert f"make {command}" in readme
        assert f"\n{command}:" in makefile
    wanted = ["**Bounded memory", "<img", "pip install", "floodline demo", "floodline run"]
    wanted += ["```python", "| measured on"]
    places = [readme.index(word) for word in wanted]
    assert places == sorted(places)
    assert places[-1] < readme.index("\n## ")
    first = BLOCK.search(readme)
    assert first is not None
    assert len(first[1].strip().splitlines()) == 8


TASKS = (
    "FastAPI with streaming", "A chat bot", "An MCP server", "A thread pool",
    "Several processes and machines", "Docker and Kubernetes", "Choosing bounds",
    "Reading a verdict", "Finding a leak in production", "pytest in CI",
)  # fmt: skip


@pytest.mark.parametrize("task", TASKS)
def test_the_index_of_tasks_leads_to_each_of_them(task):
    index = (ROOT / "docs" / "howto" / "index.md").read_text(encoding="utf-8")
    found = re.search(rf"\[{task}\]\(([^)]+)\)", index)
    assert found is not None
    assert (ROOT / "docs" / "howto" / found[1]).exists()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented(name):
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert f"floodline {name} " in text or f"floodline {name}`" in text


def test_every_rule_of_the_semantics_is_cited_by_a_test():
    rules = re.findall(r"^- \*\*\[(\w+)\]\*\*", SEMANTICS, re.MULTILINE)
    assert len(rules) == len(set(rules))
    cited = {
        rule
        for file in (ROOT / "tests").rglob("*.py")
        if file != Path(__file__)
        for rule in RULE.findall(file.read_text(encoding="utf-8"))
    }
    assert sorted(set(rules) - cited) == []
    assert sorted(cited - set(rules)) == []
