"""`floodline demo`: a program that leaks beside the same program with bounds."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import click

import floodline
from floodline.cli._demo.curves import Screen
from floodline.cli._demo.players import Player, play_until_done, watch_on_dashboards
from floodline.errors import ConfigError
from floodline.leaks._vocabulary import Outcome

PACKAGE = Path(floodline.__file__).parent
# once installed, the examples are in the package; in a checkout, they are beside the sources
FOLDERS = (PACKAGE / "examples", PACKAGE.parents[1] / "examples")
SYSTEMS = {
    "plan_service": "a memory for each plan, freed only by callers that remember to",
    "session_worker": "conversations, queues and streams, freed only by a DELETE call",
    "swarm_caches": "five caches with announced limits, four of which do not exist",
    "stage_pipeline": "every snapshot, output and event of thousands of turns is kept",
    "plugin_host": "35 maps by session, cleared by an event that is sometimes lost",
}
EXPECTED = {"leaky": Outcome.GROWING, "bounded": Outcome.BOUNDED}
LISTED = "\n    ".join(f"{name:<15} {line}" for name, line in SYSTEMS.items())


@click.command(
    "demo",
    help=f"""Run a program that leaks beside the same program with bounds.

    Draws the memory of both while they run, then says for each whether it grows, what grows, and
    which line feeds it. Takes under a minute and writes nothing.

    \b
    NAME is one of:
    {LISTED}

    Exit status: 0 if the first is growing and the second bounded, 1 otherwise, 2 usage error.
    """,
)
@click.argument("name", default="plan_service", metavar="[NAME]")
@click.option("--web", is_flag=True,
              help="Run both until Ctrl-C, each with its dashboard.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(min=40), default=300, show_default=True,
              help="Rounds of work for each; fewer are quicker and less certain.")  # fmt: skip
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False),
              help="Also write both answers and curves as JSON.")  # fmt: skip
def command(name: str, web: bool, rounds: int, json_file: Path | None) -> int:
    """Find the example and run it."""
    folder = _folder(name)
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise click.UsageError(f"--json {str(json_file)!r}: its folder does not exist; create it")
    if web:
        return watch_on_dashboards(folder)
    click.echo(f"{name}: {SYSTEMS[folder.name]}")
    with Screen(rounds) as screen:
        players = play_until_done(folder, rounds, screen)
    for player in players:
        click.echo(f"\n{_heading(player)}\n{_text(player)}")
    click.echo(_next_steps(folder))
    if json_file is not None:
        json_file.write_text(json.dumps(_document(folder.name, players), indent=1) + "\n", "utf-8")
    return 0 if all(EXPECTED[p.version] == p.verdict for p in players) else 1


def _folder(name: str) -> Path:
    wanted = name.replace("-", "_").lower()
    if wanted not in SYSTEMS:
        raise click.UsageError(f"there is no demo {name!r}; choose one of: {', '.join(SYSTEMS)}")
    for parent in FOLDERS:
        if (parent / wanted / "scenario.py").is_file():
            return parent / wanted
    raise ConfigError(f"the example {wanted} is missing; reinstall floodline or use a clone")


def _heading(player: Player) -> str:
    line = f"{player.version}.py"
    return click.style(line, bold=True) if sys.stdout.isatty() else line


def _text(player: Player) -> str:
    if player.record is None:
        return f"no answer: its process ended with status {player.status}"
    here = f"{player.folder}/"  # the heading already says where
    return player.record["text"].replace(here, "").strip()


def _next_steps(folder: Path) -> str:
    shown = folder
    if Path.cwd() in folder.parents:
        shown = folder.relative_to(Path.cwd())
    return f"""
To look closer:
  cd {shown}
  diff -u leaky.py bounded.py                 # what made the difference
  floodline scan leaky.py                     # found without running it
  floodline soak scenario.py                  # named by running it
  floodline verify fixed.toml --execute       # proved, limit by limit
  VERSION=bounded floodline soak scenario.py  # proved by running it"""


def _document(name: str, players: list[Player]) -> dict[str, object]:
    return {
        "schema": 1,
        "tool": f"floodline {floodline.__version__}",
        "python": platform.python_version(),
        "name": name,
        **{p.version: p.record and p.record["answer"] for p in players},
        "curves": {p.version: p.curve for p in players},
        "errors": [_text(p) for p in players if p.record is None],
    }
