"""The session API for apps of your own; `floodline serve` is the same in a process of its own."""

from __future__ import annotations

from floodline._service import create_app

__all__ = ["create_app"]
