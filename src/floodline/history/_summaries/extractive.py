"""A summariser that needs no model: it picks sentences and lists the tools called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from floodline._units import Size, parse_size
from floodline.errors import MalformedMessage
from floodline.history._formats.markers import SUMMARY_HEADING
from floodline.history._formats.shapes import Kind, Message, gemini_part, read

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_WORD = re.compile(r"\w{4,}")
_LONGEST = 240
_SCANNED = 20_000  # characters per message; the rest adds little to the gist


def extractive_summary(messages: Sequence[Message], *, max_bytes: Size = "4 KiB") -> str:
    """Summarise without a model: what users asked, the tools called, the weightiest sentences.

    Always at most `max_bytes`; a summary that leads `messages` is carried over, shortened first.
    """
    limit = parse_size(max_bytes, "max_bytes")
    earlier, asked, said, tools = _sort_out(messages)
    words = Counter(word for line in (*asked, *said) for word in _WORD.findall(line.lower()))
    sections = [
        ("Earlier:", earlier, 0.35),
        ("The user asked:", asked, 0.7),
        ("Said:", _weightiest(said, words, 12), 0.9),
        ("Tools called:", [f"{name} ({n}×)" for name, n in tools.most_common(20)], 1.0),
    ]
    lines: list[str] = []
    used = 0
    for title, entries, share in sections:
        for i, line in enumerate(_latest(entries, int(limit * share) - used - len(title) - 1)):
            new = [title, f"- {line}"] if i == 0 else [f"- {line}"]
            lines += new
            used += sum(len(part.encode()) + 1 for part in new)
    text = "\n".join(lines) or f"{len(messages)} messages without text."
    return text.encode()[:limit].decode(errors="ignore")


def _sort_out(
    messages: Sequence[Message],
) -> tuple[list[str], list[str], list[str], Counter[str]]:
    earlier: list[str] = []
    asked: list[str] = []
    said: list[str] = []
    tools: Counter[str] = Counter()
    for message in messages:
        try:
            kind = read(message, "$").kind
        except MalformedMessage:  # accepted by an older version
            kind = Kind.opaque
        text = "\n".join(_texts(message))[:_SCANNED]
        if text.startswith(SUMMARY_HEADING):
            found = text.removeprefix(SUMMARY_HEADING).strip().splitlines()
            earlier += [line.removeprefix("- ") for line in found if not line.endswith(":")]
        elif kind is Kind.user:
            asked += [_clip(line) for line in _SENTENCE.findall(text)[:1] if line.strip()]
        elif kind is Kind.model:
            said += [_clip(line) for line in _SENTENCE.findall(text) if line.strip()]
            tools.update(_tool_names(message))
    return earlier, asked, said, tools


def _texts(message: Message) -> Iterator[str]:
    content: Any = message.get("content", message.get("parts"))
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(text := part.get("text"), str):
                yield text


def _tool_names(message: Message) -> Iterator[str]:
    for call in message.get("tool_calls") or ():
        yield str(call.get("function", call).get("name", "custom tool"))
    if message.get("type") == "function_call":
        yield message["name"]
    for part in message.get("parts") or ():
        if call := gemini_part(part, "functionCall"):
            yield call["name"]
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "tool_use":
            yield block["name"]


def _weightiest(lines: list[str], words: Counter[str], count: int) -> list[str]:
    """Return the sentences with the most frequent words, in the order in which they were said."""

    def weight(i: int) -> float:
        found = set(_WORD.findall(lines[i].lower()))
        return sum(words[word] for word in found) / (len(found) + 3)

    best = sorted(range(len(lines)), key=lambda i: (-weight(i), -i))[:count]
    return [lines[i] for i in sorted(best)]


def _latest(lines: list[str], room: int) -> list[str]:
    """Return as many of the last lines as fit; each takes its dash and its line break."""
    chosen: list[str] = []
    for line in reversed(lines):
        room -= len(line.encode()) + 3
        if room < 0:
            break
        chosen.append(line)
    return chosen[::-1]


def _clip(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
