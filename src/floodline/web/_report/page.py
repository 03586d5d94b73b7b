"""The report as one HTML page that can be mailed: no script, no other file."""

from __future__ import annotations

from floodline._pages import answer_page
from floodline._pages.document import document, figure, header, nothing, section, steps
from floodline._pages.markup import Markup, join, tag
from floodline._units import format_duration, format_size
from floodline.recorder._answers.held_text import held_words, split_words
from floodline.recorder._snapshot import (
    ContainerState,
    EventState,
    ProcessState,
    SessionsState,
    Snapshot,
)
from floodline.web._report.memory_curve import curve, in_words
from floodline.web._report.source_notes import ExplainedSuspect, FindingNote
from floodline.web._words import phrases as words
from floodline.web._words.advice import advice

HOLDERS = 12
Row = list[tuple[str, object]]


def page(state: Snapshot, suspects: list[ExplainedSuspect]) -> str:
    """Return the page; `suspects` are those of the state, as `explained` returns them."""
    when = f"{words.moment(state['started'])}, {format_duration(state['now'] - state['started'])}"
    parts = [
        _verdict(state),
        section("Memory", figure(curve(state), in_words(state))),
        section("What grew", answer_page.suspects([_suspect(each) for each in suspects])),
        section("In memory at the end", _held(state)),
        section("Sessions", _sessions(state["sessions"])),
        section("The end", tag("p", words.ending(state))),
        section("What to do next", steps(advice(state))),
        section("Bounded containers", _levels(state["containers"])),
        section("Processes", _processes(state["processes"]), _gaps(state)),
        section("Events", _events(state["events"])),
    ]
    return document(
        f"floodline report: {state['verdict']}",
        header("floodline report", when, state["command"]),
        parts,
        f"{state['tool']}, Python {state['python']}. Times are UTC.",
    )


def _verdict(state: Snapshot) -> Markup:
    memory = state["memory"]
    unclosed, changed = words.unclosed(state), words.verdicts(state)
    figures = [
        ("Memory at the end", words.measured(memory["now"])),
        ("Peak", words.measured(memory["peak"])),
        ("Growth", words.rise(state)),
        ("The line", words.crossing(state)),
    ]
    failed = state["closed"] and words.failed(state)
    return answer_page.verdict(
        state["verdict"],
        words.because(state),
        figures,
        tag("p", words.ending(state), class_="ended") if failed else None,
        tag("p", changed, class_="note") if changed else None,
        tag("p", unclosed, class_="note") if unclosed else None,
    )


def _suspect(suspect: ExplainedSuspect) -> Markup:
    finding = suspect.get("finding")
    more: Row = [
        ("Scan says", _finding(finding) if finding else None),
        ("Processes", ", ".join(map(str, suspect["pids"]))),
    ]
    return answer_page.suspect(suspect, code=suspect.get("code", ""), more=more)


def _finding(finding: FindingNote) -> Markup:
    where = f"{finding['path']}:{finding['line']}"
    return join(
        f"{finding['rule']} ({finding['confidence']}) at ", tag("code", where), ": ",
        finding["message"], " ", tag("code", f"floodline explain {finding['rule']}"),
    )  # fmt: skip


def _held(state: Snapshot) -> Markup:
    table = _table(
        [
            [
                ("Place", tag("span", each["owner"], class_="owner")),
                ("Bytes, estimated", format_size(each["bytes"])),
                ("Of resident", f"{each['share']:.0%}"),
                ("What", held_words(each)),
                ("Process", each["pid"]),
            ]
            for each in state["holders"][:HOLDERS]
        ],
        "No process has said what it holds: that takes a whole walk of its objects.",
    )
    splits = [
        tag("li", f"Process {one['pid']}: {split_words(one['split'])}")
        for one in state["processes"]
        if one["split"]
    ]
    return join(table, tag("ul", splits, class_="blind") if splits else None)


def _sessions(sessions: list[SessionsState]) -> Markup:
    return _table(
        [
            [
                ("Name", tag("span", each["name"], class_="owner")),
                ("Live", words.count(each["live"])),
                ("Parked", words.count(each["parked"])),
                ("Opened", words.count(each["opened"])),
                ("Left, by reason", words.left(each)),
                ("Stuck", words.count(each["stuck"])),
                ("Retained", words.count(each["retained"])),
                ("Process", each["pid"]),
            ]
            for each in sessions
        ],
        "The program had no floodline sessions.",
    )


def _processes(processes: list[ProcessState]) -> Markup:
    return _table(
        [
            [
                ("Process", tag("code", each["command"])),
                ("Pid", each["pid"]),
                ("State", _how_it_is(each)),
                ("Verdict", each["verdict"]),
                ("Peak", words.measured(each["peak"] or each["rss"])),
                ("Threads", words.count(each["threads"])),
                ("Tasks", words.count(each["tasks"])),
                ("Files", words.count(each["fds"])),
                ("Our cost", f"{each['cost_seconds']:.1f} s"),
            ]
            for each in processes
        ],
        "No process has reported.",
    )


def _how_it_is(process: ProcessState) -> str:
    return words.how(process["exit"]) if process["exit"] else process["state"]


def _table(rows: list[Row], otherwise: str) -> Markup:
    if not rows:
        return nothing(otherwise)
    names = [tag("th", name, scope="col", role="columnheader") for name, _ in rows[0]]
    head = tag("thead", tag("tr", names, role="row"), role="rowgroup")
    body = tag("tbody", [tag("tr", _cells(row), role="row") for row in rows], role="rowgroup")
    return tag("table", head, body, role="table")


def _cells(row: Row) -> list[Markup]:
    first, others = row[0], row[1:]
    return [
        tag("td", first[1], role="cell", class_="first"),
        *(tag("td", value, role="cell", data_label=name) for name, value in others),
    ]


def _levels(containers: list[ContainerState]) -> Markup:
    if not containers:
        return nothing("The program had no bounded containers.")
    return tag("ul", [_level(each) for each in containers], class_="levels")


def _level(container: ContainerState) -> Markup:
    percent = round(words.fullness(container) * 100)
    gone = f"; left: {words.left(container)}" if words.reasons(container) else ""
    return tag(
        "li",
        tag("p", tag("span", container["name"]), tag("span", f"{container['kind']}, {percent} %"),
            class_="name"),
        tag("div", tag("span", style=f"width:{percent}%"), class_="level", role="meter",
            aria_label=f"{container['name']} is filled", aria_valuenow=percent,
            aria_valuemin=0, aria_valuemax=100),
        tag("p", f"{words.amount(container)}{gone}", class_="amount"),
    )  # fmt: skip


def _gaps(state: Snapshot) -> Markup:
    blind = words.blind_spots(state)
    title = tag("summary", "What this kind of watch does not see")
    return join(
        tag("ul", [tag("li", text) for text in state["not_covered"]], class_="gaps"),
        tag("details", title, tag("ul", [tag("li", text) for text in blind], class_="blind"))
        if blind
        else None,
    )


def _events(events: list[EventState]) -> Markup:
    if not events:
        return nothing("No events.")
    return tag("ol", [_event(each) for each in events], class_="events")


def _event(event: EventState) -> Markup:
    return tag(
        "li",
        tag("time", words.clock(event["at"])),
        tag("span", event["kind"].replace("_", " "), class_="kind"),
        tag("span", event["text"], words.times(event), class_="text"),
    )
