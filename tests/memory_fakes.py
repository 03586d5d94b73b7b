"""Memory and time that do as they are told."""

from __future__ import annotations

from typing import Any

from floodline.memory import MemoryTracker

MIB = 1 << 20


class FakeMemory:
    """A probe whose answer the test sets; it can be grown and shrunk."""

    def __init__(self, size: int = 100) -> None:
        self.size = size

    def __call__(self) -> int:
        return self.size

    def grow(self, size: int) -> None:
        self.size += size


class FakeClock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fake_tracker(**options: Any) -> tuple[MemoryTracker, FakeMemory, FakeClock]:
    """Make a tracker with memory and time of its own."""
    memory, clock = FakeMemory(), FakeClock()
    return MemoryTracker(probe=memory, clock=clock, **options), memory, clock
