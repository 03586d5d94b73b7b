"""Why something is claimed: a name for code, a text for people."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Self

_new = tuple.__new__  # calling the class takes twice as long


class Ground(Enum):
    """A table of grounds: the name of a member is for code, its text for people.

    Every stage and every rule has its own table. Each `{}` in a text stands for one value.
    No code may look at a text: changing one changes no verdict.
    """

    text: str

    def __new__(cls, text: str) -> Self:
        member = object.__new__(cls)
        member._value_ = len(cls.__members__)  # two members may share a text
        member.text = text
        return member

    def __call__(self, *values: str | Reason) -> Reason:
        """Give the ground its values."""
        return _new(Reason, (self, values))


class Reason(NamedTuple):
    """A ground and its values, which may be other reasons."""

    ground: Ground
    values: tuple[str | Reason, ...]

    def rests_on(self, ground: Ground) -> bool:
        """Return True if it has this ground, or a reason inside it does."""
        return self.ground is ground or any(
            isinstance(value, Reason) and value.rests_on(ground) for value in self.values
        )

    def __str__(self) -> str:
        return self.ground.text.format(*self.values)
