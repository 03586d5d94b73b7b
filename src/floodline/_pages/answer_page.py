"""The parts of a page that show an answer, the same for soak and for run."""

from __future__ import annotations

from collections.abc import Sequence

from floodline._pages.answer_words import BY_TIME, Pace, growth, pace, place, title
from floodline._pages.document import nothing
from floodline._pages.markup import Markup, join, tag
from floodline.leaks._suspect_record import SuspectRecord
from floodline.leaks._vocabulary import LineSource

Facts = Sequence[tuple[str, object]]


def verdict(word: str, because: str, figures: Facts, *notes: Markup | None) -> Markup:
    """Return the first thing that a reader sees: the verdict, why, and the figures."""
    return tag(
        "section",
        tag("div",
            tag("h1", title(word), id="verdict", data_verdict=word),
            tag("p", because, id="because"),
            notes),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in figures],
            class_="figures"),
        class_="hero",
        aria_labelledby="verdict",
    )  # fmt: skip


def suspects(cards: Sequence[Markup]) -> Markup:
    """Return all suspects, worst first."""
    return tag("div", cards, class_="grown") if cards else nothing("Nothing.")


def suspect(
    one: SuspectRecord,
    by: Pace = BY_TIME,
    *,
    code: str = "",
    more: Facts = (),
    drawn: Markup | None = None,
) -> Markup:
    """Return one suspect: `code` is the text of the feeding line, `more` are facts from a run."""
    state = tag("span", one["verdict"], class_="state", data_state=one["verdict"])
    how = "" if one["line_source"] in (LineSource.TRACE, None) else f" ({one['line_source']})"
    facts: Facts = [
        ("Verdict", state),
        ("Size", f"{one['type']}, {one['len']:,} items"),
        ("Rate", f"{pace(one['per_round'], by)}, {growth(one['bytes_per_round'], by)}"),
        ("Defined in", one["defined_in"]),
        ("Reached by", tag("code", one["path"])),
        ("Fed at", join(tag("code", place(one) or "not known"), how)),
        ("", tag("code", code) if code else None),
        ("Holds", one["holds"]),
        ("Echoed by", ", ".join(one["echoes"])),
        *more,
    ]
    rows = [(tag("dt", name), tag("dd", value)) for name, value in facts if value]
    return tag("article", tag("h3", one["owner"]), tag("dl", rows, class_="facts"), drawn)
