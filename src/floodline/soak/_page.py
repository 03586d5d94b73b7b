"""The answer as one self-contained HTML page: no scripts, fonts or network."""

from __future__ import annotations

from collections.abc import Sequence

from floodline._pages import answer_page
from floodline._pages.answer_words import (
    BY_ROUND,
    ELSEWHERE,
    FLAT,
    UNNAMED,
    gains,
    growth,
    title,
)
from floodline._pages.chart import BYTES, COUNT, ROUNDS, Line, Scale, chart, legend
from floodline._pages.document import Step, document, figure, header, section, steps
from floodline._pages.markup import Markup, join, tag
from floodline._units import format_size
from floodline.leaks._suspect_record import SuspectRecord
from floodline.leaks._vocabulary import Outcome, Where
from floodline.soak._answer import AnswerRecord, SeriesRecord

FAILED = "failed"
GAINED = Scale(lambda size: f"{'-' if size < 0 else '+'}{format_size(abs(size))}", BYTES.step)
TO_DO = {
    Outcome.GROWING: Step(
        "Open the line that feeds the first suspect, and make sure that what it adds is removed: "
        "by a bound (BoundedMap, Sessions), by cleaning up in finally, or by a weak reference. "
        "Then soak again."
    ),
    Outcome.BOUNDED: Step(
        "Nothing to do. To keep it that way, turn the scenario into a test:", "@pytest.mark.soak"
    ),
    FAILED: Step("Fix the scenario so that it runs, then soak again."),
}


def page(record: AnswerRecord, text: str) -> str:
    """Return the page: the verdict, memory by kind, each suspect, what to do next, the words."""
    word = FAILED if record["errors"] else record["verdict"]
    measured = record["rounds"] - record["warmup"]
    figures = [
        ("Resident memory", growth(record["rss_per_round"], BY_ROUND)),
        ("Python objects", f"{record['objects_per_round']:+.3g}/round"),
        ("Growth in", record["where"] or Where.NONE),
        ("Rounds measured", f"{measured:,}"),
    ]
    said = f"{measured} rounds measured after {record['warmup']} of warm-up"
    parts = [
        answer_page.verdict(word, _because(record, word), figures),
        _memory(record["series"]),
        section("What grows", answer_page.suspects(_suspects(record))),
        section("What to do next", steps([_next(record, word)])),
        section("In words", tag("pre", text)),
    ]
    made_by = f"{record['tool']}, Python {record['python']}."
    return document(
        f"floodline soak: {word}",
        header("floodline soak", said),
        [part for part in parts if part],
        made_by,
    )


def _because(record: AnswerRecord, word: str) -> str:
    """Say in one sentence why the verdict is what it is."""
    growing = [one for one in record["suspects"] if one["verdict"] == Outcome.GROWING]
    if word == Outcome.GROWING and growing:
        return gains(growing[0], BY_ROUND)
    if word == Outcome.GROWING:
        return ELSEWHERE.get(record["where"], UNNAMED)
    if word == Outcome.BOUNDED:
        return FLAT
    return f"{title(record['needed']['why'] or 'the scenario raised').rstrip('.')}."


def _next(record: AnswerRecord, word: str) -> Step:
    needed = record["needed"]
    if word == Outcome.GROWING and not record["suspects"]:
        return Step(f"No Python object grows, so there is nothing to name: {needed['why'] or ''}")
    if word == Outcome.UNDECIDED:
        rounds = needed["rounds"] or 2 * record["rounds"]
        return Step("Run more rounds:", f"floodline soak --rounds {rounds} …")
    return TO_DO[word]


def _memory(series: SeriesRecord) -> Markup | None:
    """Draw how much each kind of memory gained since the first sample."""
    if len(series.get("rss", ())) < 2:
        return None
    total = _gained(series["rss"])
    known = {
        "Python objects": _gained(series["arenas"]),
        "malloc in use": _gained(series["malloc_used"]),
        "malloc free, held": _gained(series["malloc_free"]),
        "mapped by malloc": _gained(series["malloc_mapped"]),
    }
    rest = [all_of - sum(part) for all_of, *part in zip(total, *known.values(), strict=True)]
    kinds = {"resident": total, **known, "not explained": rest}
    lines = [
        Line(name, list(zip(series["rounds"], values, strict=True)), f"line-{number}")
        for number, (name, values) in enumerate(kinds.items(), 1)
    ]
    ends = ", ".join(f"{line.name} {GAINED.show(line.points[-1][1])}" for line in lines)
    said = "Memory gained since the first sample"
    drawn = chart(lines, ROUNDS, BYTES, label=f"{said}: {ends}")
    return section("Memory", figure(drawn, join(tag("p", f"{said}."), legend(lines, GAINED))))


def _gained(values: Sequence[float]) -> list[float]:
    return [value - values[0] for value in values]


def _suspects(record: AnswerRecord) -> list[Markup]:
    series = record["series"]
    lengths = series.get("suspects", [])
    drawn = [_length(series["rounds"], values) for values in lengths]
    drawn += [None] * (len(record["suspects"]) - len(drawn))
    return [_card(one, curve) for one, curve in zip(record["suspects"], drawn, strict=False)]


def _card(one: SuspectRecord, drawn: Markup | None) -> Markup:
    return answer_page.suspect(one, BY_ROUND, drawn=drawn)


def _length(rounds: Sequence[int], values: Sequence[int]) -> Markup | None:
    if len(values) < 2:
        return None
    line = Line("length", list(zip(rounds, values, strict=True)))
    label = f"Length over rounds: from {values[0]:,} to {values[-1]:,}"
    return figure(chart([line], ROUNDS, COUNT, label=label), "Length over rounds.")
