"""The list that is sent: the stored messages, in a form that the provider's API accepts."""

from __future__ import annotations

from floodline.history._atoms import Atom, Entry
from floodline.history._cut import Plan
from floodline.history._formats.check import accepts
from floodline.history._formats.markers import (
    STILL_RUNNING,
    SUMMARY_HEADING,
    alternate,
    results_for,
    summary_message,
    unmarked,
)
from floodline.history._formats.shapes import ANTHROPIC, GEMINI, RESPONSES, Kind, Message
from floodline.history._ledger import Ledger


def compose(ledger: Ledger, left_out: Plan | None, family: str | None) -> tuple[list[Message], int]:
    """Return the messages for `family`, and their tokens.

    They are the stored dicts themselves; only interrupted answers, and neighbours that must be
    joined, are new. What the API would reject is left out: shapes of other providers, reasoning
    that nothing follows yet, and, for Anthropic and Gemini, system messages and whatever precedes
    the first user message. A call in flight gets a result that says so.
    """
    strict = family in (ANTHROPIC, GEMINI)
    messages: list[Message] = []
    tokens = 0
    for section in ledger.sections(left_out):
        if isinstance(section, Entry):
            messages.append(_summary_for(family, section.message))
            tokens += section.tokens
        elif _sendable(section, family, strict):
            if strict and not messages and section.kind is not Kind.user:
                continue
            for entry in section.entries:
                messages.append(unmarked(entry.message))
                tokens += entry.tokens
            if section.open:
                asked = [entry.message for entry in section.entries]
                messages += results_for(section.family, asked, section.open, STILL_RUNNING)
    return alternate(messages, family), tokens


def _sendable(atom: Atom, family: str | None, strict: bool) -> bool:
    if atom.family == RESPONSES and atom.dangling:
        return False
    if family is None:
        return True
    if strict and atom.kind is Kind.system:
        return False
    if not accepts(family, atom.family, atom.kind):
        return False
    # if the model said nothing, the API rejects the empty message
    said_nothing = atom.kind is Kind.model and not atom.entries[0].message.get("content")
    return not (family == ANTHROPIC and said_nothing)


def _summary_for(family: str | None, message: Message) -> Message:
    if ("parts" in message) == (family == GEMINI):
        return message
    text = message["content"] if "content" in message else message["parts"][0]["text"]
    return summary_message(family, text.removeprefix(f"{SUMMARY_HEADING}\n"))
