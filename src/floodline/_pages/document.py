"""A page that can be mailed: one HTML file without scripts or external resources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from floodline._pages.markup import Markup, tag

STYLE = Path(__file__).parent / "style.css"  # used by the dashboard too
DOCUMENT_STYLE = Path(__file__).parent / "document.css"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(slots=True, frozen=True)
class Step:
    """One thing to do: a sentence, and the line of code for it if there is one."""

    says: str
    code: str = ""


def document(name: str, header: Markup, parts: Sequence[Markup], footer: str) -> str:
    """Return the whole page."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", name),
        tag("style", Markup(STYLE.read_text("utf-8") + DOCUMENT_STYLE.read_text("utf-8"))),
    )
    body = tag("body", header, tag("main", parts), tag("footer", tag("p", footer)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def header(name: str, when: str, command: str = "") -> Markup:
    """Return the header: what created the page, for which program, and when or how much."""
    return tag(
        "header",
        tag("p", name, class_="mark"),
        tag("p", command, class_="command"),
        tag("p", when),
    )


def section(title: str, *content: object) -> Markup:
    """Return a part of the page: its name on the left, its content on the right."""
    name = title.lower().replace(" ", "-")
    return tag("section", tag("h2", title, id=name), tag("div", *content), aria_labelledby=name)


def figure(drawn: Markup, caption: object) -> Markup:
    """Return a chart that a narrow screen can scroll, with its caption."""
    return tag("figure", tag("div", drawn, class_="wide"), tag("figcaption", caption))


def steps(todo: Sequence[Step]) -> Markup:
    """Return what to do next, as a numbered list."""
    return tag("ol", [tag("li", tag("div", each.says, _code(each))) for each in todo],
               class_="steps")  # fmt: skip


def _code(step: Step) -> Markup | None:
    return tag("pre", tag("code", step.code)) if step.code else None


def nothing(text: str) -> Markup:
    """Return the text shown when there is nothing to show."""
    return tag("p", text, class_="none")
