"""Both memory curves of a demo: drawn in a terminal, or as plain lines in a pipe."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from floodline._units import format_size
from floodline.cli._demo.players import Player

BLOCKS = " ▁▂▃▄▅▆▇█"
HEIGHT = 10  # lines of a curve
WIDEST = 60
COLORS = {"leaky": "red", "bounded": "cyan"}
LINE_EVERY = 2.0  # seconds between two lines in a pipe


class Screen:
    """Shows the curves while the block lasts; those drawn last stay on the terminal."""

    def __init__(self, rounds: int, console: Console | None = None) -> None:
        self._rounds = rounds
        self._console = console or Console()
        self._live: Live | None = None
        self._next_line = time.monotonic()

    def __enter__(self) -> Screen:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def draw(self, players: list[Player]) -> None:
        """Show the current curves."""
        if self._live is not None:
            drawn = curves(players, self._rounds, self._console.width)
            self._live.update(drawn, refresh=True)
        elif time.monotonic() >= self._next_line and all(p.curve for p in players):
            self._next_line = time.monotonic() + LINE_EVERY
            click.echo("   ".join(self._state(player) for player in players))

    def _state(self, player: Player) -> str:
        return f"{player.version}: {format_size(player.curve[-1][1])}, round {player.done}"


def curves(players: Sequence[Player], rounds: int, width: int) -> RenderableType:
    """Return both curves next to each other, on one scale that begins at zero."""
    most = max((size for player in players for _, size in player.curve), default=1)
    table = Table.grid(padding=(0, 3))
    cells = []
    for player in players:
        sizes = [size for _, size in player.curve]
        now = format_size(sizes[-1]) if sizes else ""
        head = Text.assemble(
            (player.version, "bold"), f"  {now}  ", (f"round {player.done} of {rounds}", "dim")
        )
        lines = bars(sizes, min(WIDEST, max(10, width // 2 - 4)), HEIGHT, most)
        cells.append(Group(head, Text("\n".join(lines), COLORS[player.version])))
    table.add_row(*cells)
    return Group(table, Text(f"resident memory, from 0 to {format_size(most)}", "dim"))


def bars(values: Sequence[float], width: int, height: int, most: float) -> list[str]:
    """Return lines of blocks, the top first; more values than columns are joined by their peak."""
    count = min(width, len(values))
    parts = [
        values[n * len(values) // count : (n + 1) * len(values) // count] for n in range(count)
    ]
    filled = [round(max(part) / most * height * 8) for part in parts]
    return [
        "".join(BLOCKS[min(8, max(0, each - 8 * row))] for each in filled).ljust(width)
        for row in reversed(range(height))
    ]
