"""Follow docs/tutorial.md: write its files, run its commands in order, compare what they print.

`python tests/tutorial.py` runs it and says what differs; with `--write` it puts what was printed
into the page. Numbers differ from run to run, so they are compared as `0`.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
BLOCK = re.compile(
    r'^```(?:\w+ title="(?P<file>[^"]+)"|console)\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
MINUTES = re.compile(r" \(\d+:\d\d:\d\d\)")  # what pytest adds when a run took longer than one
NUMBER = re.compile(r"[+-]?\d[\d,.]*(?: (?:B|KiB|MiB|ms|s|µs)\b)?")


def masked(text: str) -> str:
    """Return a text with its numbers replaced, for they are never the same twice."""
    return NUMBER.sub("0", MINUTES.sub("", text)).rstrip() + "\n"


def printed(command: str, folder: Path) -> str:
    """Run a command as a reader would, and return what it prints."""
    tools = str(Path(sys.executable).parent)
    path = os.pathsep.join((tools, os.environ["PATH"]))
    # pytest as a reader has it: with floodline and without the plugins of our own tests
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "floodline.pytest_plugin"}
    # a reader measures no coverage, which takes the place of the tracer that finds a line
    own = {name: one for name, one in os.environ.items() if not name.startswith("COVERAGE_")}
    env = {**own, "PATH": path, "COLUMNS": "100", **plugins}
    ran = subprocess.run(
        command, shell=True, cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    return ran.stdout + ran.stderr


def follow(page: str, folder: Path) -> Iterator[tuple[re.Match[str], str]]:
    """Write the files of a page and run its commands; yield each block of output as it is now."""
    for block in BLOCK.finditer(page):
        if block["file"] is not None:
            (folder / block["file"]).write_text(block["text"], encoding="utf-8")
            continue
        command = block["text"].partition("\n")[0]
        yield block, f"{command}\n{printed(command.removeprefix('$ '), folder)}"


def differences(page: str, folder: Path) -> list[str]:
    """Return how what the commands print differs from what the page shows."""
    return [
        line
        for block, now in follow(page, folder)
        for line in difflib.unified_diff(
            masked(block["text"]).splitlines(), masked(now).splitlines(), "shown", "printed", "", ""
        )
    ]


def main() -> int:
    """Compare, or with `--write` bring the page up to date."""
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        if "--write" not in sys.argv:
            found = differences(page, Path(folder))
            print("\n".join(found) or "the tutorial is as shown")  # noqa: T201 - a command
            return bool(found)
        for block, now in reversed(list(follow(page, Path(folder)))):
            page = page[: block.start("text")] + now.rstrip() + "\n" + page[block.end("text") :]
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
