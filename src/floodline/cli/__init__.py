"""The command line: `floodline COMMAND`; one module a command, imported when it is called."""

from __future__ import annotations

from floodline.cli._main import main

__all__ = ["main"]
