"""Words shared by the answers of soak and run: rates, places, and reasons."""

from __future__ import annotations

from dataclasses import dataclass

from floodline._units import format_number, format_size
from floodline.leaks._suspect_record import SuspectRecord
from floodline.leaks._vocabulary import Where

FLAT = "Python objects and process memory are both flat."
UNNAMED = "Memory grows, and no single container explains it."
ELSEWHERE: dict[Where | None, str] = {
    Where.NATIVE: "Memory grows outside Python objects: in C extensions or their buffers.",
    Where.FRAGMENTATION: "The allocator keeps what Python has freed: fragmentation, not a "
    "container.",
}


@dataclass(slots=True, frozen=True)
class Pace:
    """The units of rates: for items the first that suits, and one for bytes."""

    units: tuple[tuple[str, int], ...]
    bytes_unit: tuple[str, int]


BY_ROUND = Pace((("round", 1),), ("round", 1))
BY_TIME = Pace((("s", 1), ("min", 60), ("h", 3600)), ("min", 60))


def title(text: str) -> str:
    """Capitalise the first letter, except of a name such as `app.SESSIONS`."""
    first = text.partition(" ")[0]
    return text if "." in first[:-1] or "_" in first else text[:1].upper() + text[1:]


def pace(rate: float, by: Pace = BY_TIME) -> str:
    """Write how many items a container gains, in the unit that suits it."""
    unit, many = next((each for each in by.units if abs(rate) * each[1] >= 1), by.units[-1])
    amount = rate * many
    number = f"{'-' if amount < 0 else '+'}{format_number(abs(amount))}"
    return f"{number} item{'' if number in ('+1', '-1') else 's'}/{unit}"


def growth(rate: float, by: Pace = BY_TIME) -> str:
    """Write how many bytes are gained."""
    unit, many = by.bytes_unit
    amount = rate * many
    if abs(amount) < 1:
        return "none"
    return f"{'-' if amount < 0 else '+'}{format_size(abs(amount))}/{unit}"


def place(suspect: SuspectRecord) -> str:
    """Write the line that feeds a container and who calls it, or nothing."""
    if not suspect["file"]:
        return ""
    fed = f"{suspect['file']}:{suspect['line']}" if suspect["line"] else suspect["file"]
    caller = suspect.get("caller")
    return f"{fed}, called from {caller['file']}:{caller['line']}" if caller else fed


def gains(suspect: SuspectRecord, by: Pace = BY_TIME) -> str:
    """Say in one sentence what a container gains, and where."""
    fed = f", fed at {place(suspect)}" if suspect["file"] else ""
    rate = f"{pace(suspect['per_round'], by)[1:]} ({growth(suspect['bytes_per_round'], by)})"
    return f"{suspect['owner']} gains {rate}{fed}."
