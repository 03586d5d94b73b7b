"""The report as one HTML page that can be mailed: no script, no other file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from floodline._units import format_duration
from floodline.web import _phrases as words
from floodline.web._advice import Step, steps
from floodline.web._html import Markup, join, tag
from floodline.web._plot import in_words, plot

STATIC = Path(__file__).parent / "static"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
Row = list[tuple[str, object]]


def page(state: words.State, suspects: list[dict[str, Any]]) -> str:
    """Return the page; `suspects` are those of the state, as `explained` returns them."""
    name = f"floodline report: {state['verdict']}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", name),
        tag("style", Markup(_style())),
    )
    body = tag("body", _header(state), _main(state, suspects), _footer(state))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _style() -> str:
    return "".join((STATIC / f"{name}.css").read_text("utf-8") for name in ("app", "report"))


def _header(state: words.State) -> Markup:
    when = f"{words.moment(state['started'])}, {format_duration(state['now'] - state['started'])}"
    return tag(
        "header",
        tag("p", "floodline report", class_="mark"),
        tag("p", state["command"], class_="command"),
        tag("p", when),
    )


def _main(state: words.State, suspects: list[dict[str, Any]]) -> Markup:
    curve = tag("div", plot(state), class_="wide")
    todo = [_step(each) for each in steps(state)]
    return tag(
        "main",
        _hero(state),
        _section("Memory", tag("figure", curve, tag("figcaption", in_words(state)))),
        _section("What grew", _grown(suspects)),
        _section("Sessions", _sessions(state["sessions"])),
        _section("The end", tag("p", words.ending(state))),
        _section("What to do next", tag("ol", todo, class_="steps")),
        _section("Bounded containers", _levels(state["containers"])),
        _section("Processes", _processes(state["processes"]), _gaps(state)),
        _section("Events", _events(state["events"])),
    )


def _section(title: str, *content: object) -> Markup:
    name = title.lower().replace(" ", "-")
    return tag("section", tag("h2", title, id=name), tag("div", *content), aria_labelledby=name)


def _hero(state: words.State) -> Markup:
    memory = state["memory"]
    unclosed = words.unclosed(state)
    figures = [
        ("Memory at the end", words.measured(memory["now"])),
        ("At most", words.measured(memory["peak"])),
        ("Growth", words.rise(state)),
        ("The line", words.crossing(state)),
    ]
    failed = state["closed"] and words.failed(state)
    return tag(
        "section",
        tag("div",
            tag("h1", words.title(state["verdict"]), id="verdict", data_verdict=state["verdict"]),
            tag("p", words.because(state), id="because"),
            tag("p", words.ending(state), class_="ended") if failed else None,
            tag("p", unclosed, class_="note") if unclosed else None),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in figures],
            class_="figures"),
        class_="hero",
        aria_labelledby="verdict",
    )  # fmt: skip


def _grown(suspects: list[dict[str, Any]]) -> Markup:
    if not suspects:
        return _none("Nothing.")
    return tag("div", [_suspect(each) for each in suspects], class_="grown")


def _suspect(suspect: dict[str, Any]) -> Markup:
    state = tag("span", suspect["verdict"], class_="state", data_state=suspect["verdict"])
    fed = words.place(suspect) or "not known"
    how = "" if suspect["line_source"] in ("trace", None) else f" ({suspect['line_source']})"
    finding = suspect.get("finding")
    facts: Row = [
        ("Verdict", state),
        ("Size", f"{suspect['type']}, {suspect['len']:,} items"),
        ("Rate", f"{words.pace(suspect)}, {words.growth(suspect['bytes_per_round'])}"),
        ("Defined in", suspect["defined_in"]),
        ("Reached by", tag("code", suspect["path"])),
        ("Fed at", join(tag("code", fed), how)),
        ("", tag("code", suspect["code"]) if suspect.get("code") else None),
        ("Holds", suspect["holds"]),
        ("Echoed by", ", ".join(suspect["echoes"])),
        ("Scan says", _finding(finding) if finding else None),
        ("Processes", ", ".join(map(str, suspect.get("pids") or ()))),
    ]
    rows = [(tag("dt", name), tag("dd", value)) for name, value in facts if value]
    return tag("article", tag("h3", suspect["owner"]), tag("dl", rows, class_="facts"))


def _finding(finding: dict[str, Any]) -> Markup:
    where = f"{finding['path']}:{finding['line']}"
    return join(
        f"{finding['rule']} ({finding['confidence']}) at ", tag("code", where), ": ",
        finding["message"], " ", tag("code", f"floodline explain {finding['rule']}"),
    )  # fmt: skip


def _step(step: Step) -> Markup:
    code = tag("pre", tag("code", step.code)) if step.code else None
    return tag("li", tag("div", step.says, code))


def _sessions(sessions: list[dict[str, Any]]) -> Markup:
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


def _processes(processes: list[dict[str, Any]]) -> Markup:
    return _table(
        [
            [
                ("Process", tag("code", each["command"])),
                ("Pid", each["pid"]),
                ("State", _how_it_is(each)),
                ("Verdict", each["verdict"]),
                ("At most", words.measured(each.get("peak") or each["rss"])),
                ("Threads", words.count(each["threads"])),
                ("Tasks", words.count(each["tasks"])),
                ("Files", words.count(each["fds"])),
                ("Our cost", f"{each['cost_seconds'] or 0:.1f} s"),
            ]
            for each in processes
        ],
        "No process has reported.",
    )


def _how_it_is(process: dict[str, Any]) -> str:
    return words.how(process["exit"]) if process["exit"] else str(process["state"])


def _table(rows: list[Row], otherwise: str) -> Markup:
    if not rows:
        return _none(otherwise)
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


def _levels(containers: list[dict[str, Any]]) -> Markup:
    if not containers:
        return _none("The program had no bounded containers.")
    return tag("ul", [_level(each) for each in containers], class_="levels")


def _level(container: dict[str, Any]) -> Markup:
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


def _gaps(state: words.State) -> Markup:
    blind = words.blind_spots(state)
    title = tag("summary", "What a watch of this kind does not see")
    return join(
        tag("ul", [tag("li", text) for text in state["not_covered"]], class_="gaps"),
        tag("details", title, tag("ul", [tag("li", text) for text in blind], class_="blind"))
        if blind
        else None,
    )


def _events(events: list[dict[str, Any]]) -> Markup:
    if not events:
        return _none("Nothing worth telling.")
    return tag("ol", [_event(each) for each in events], class_="events")


def _event(event: dict[str, Any]) -> Markup:
    return tag(
        "li",
        tag("time", words.clock(event["at"])),
        tag("span", event["kind"].replace("_", " "), class_="kind"),
        tag("span", event["text"], words.times(event), class_="text"),
    )


def _none(text: str) -> Markup:
    return tag("p", text, class_="none")


def _footer(state: words.State) -> Markup:
    return tag("footer", tag("p", f"{state['tool']}, Python {state['python']}. Times are UTC."))
