"""What the records of facts are: structs, as these take the least time to make and to read."""

from __future__ import annotations

from typing import Any

__all__ = ["Struct", "astuple", "replace"]

try:
    from msgspec import Struct
    from msgspec.structs import astuple, replace
except ImportError:  # a newer Python that reads files for this one has no packages
    from dataclasses import dataclass, replace  # type: ignore[assignment]

    class Struct:  # type: ignore[no-redef]
        """A stand-in that is written and compared as the other one is."""

        def __init_subclass__(cls, *, order: bool = False, **_: bool) -> None:
            dataclass(unsafe_hash=True, order=order)(cls)

        def __reduce__(self) -> tuple[Any, ...]:
            return type(self), tuple(vars(self).values())

    def astuple(struct: Any, /) -> tuple[Any, ...]:  # type: ignore[misc]
        """Return what is in its fields."""
        return tuple(vars(struct).values())
