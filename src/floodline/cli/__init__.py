"""The command line: `floodline COMMAND`; each command has a module or folder, imported on call."""

from __future__ import annotations

from floodline.cli._main import main

__all__ = ["main"]
