"""Rewrites syntax of newer Pythons for the running one; every line keeps its number.

Only what the facts do not need is left out: type parameters, type aliases, and the text of those
f-strings that older Pythons cannot read. Their values stay: `f"{m["k"]}"` becomes `( m["k"], )`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

WORD = re.compile(r"[^\W\d]\w*")
STRING = re.compile(r"([rRbBuUfFtT]{0,2})('''|\"\"\"|'|\")")
HEADER = re.compile(r"(?:async[ \t]+)?(?:def|class)[ \t]+[^\W\d]\w*[ \t]*(?=\[)")
ALIAS = re.compile(r"type[ \t]+[^\W\d]\w*[ \t]*(?==[^=]|\[)")
EXCEPT = re.compile(r"except[ \t]*(\*?)[ \t]*(?=[^\W\d(])")
PAIRS = {"(": ")", "[": "]", "{": "}"}
FORMATTED = {"f", "t"}  # with the value of their fields; other prefixes only change the text


def rewritten(text: str) -> str:
    """Return the source with newer syntax replaced, the same text if there is none.

    Text that is not Python of any version may come back changed, and still cannot be parsed.
    """
    try:
        return _Rewriter(text).run()
    except (IndexError, ValueError, RecursionError):
        return text  # a string or a bracket without an end


class _Rewriter:
    """Goes through the source once, from statement to statement."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._out = list(text)
        self._joined = False  # the last token is a string
        self._replaced = False  # and it was rewritten

    def run(self) -> str:
        position, depth, begins = 0, 0, True
        while position < len(self._text):
            here = self._text[position]
            if here in " \t\f":
                position += 1
                continue
            if here == "\\" and self._text[position + 1 : position + 2] in "\r\n":
                position += 2
                continue
            if here in "\r\n;":
                begins = begins or not depth
                position += 1
                continue
            if here == "#":
                position = self._line_end(position)
                continue
            if begins and not depth:
                begins = False
                if (end := self._statement(position)) is not None:
                    position, self._joined = end, False
                    continue
            if found := STRING.match(self._text, position):
                position = self._string(position, found)
                continue
            self._joined = self._replaced = False
            if here in PAIRS:
                depth += 1
            elif here in PAIRS.values():
                depth -= 1
            elif here == ":" and not depth:
                begins = True  # `else: type X = int`
            if word := WORD.match(self._text, position):
                position = word.end()
            else:
                position += 1
        return "".join(self._out)

    def _line_end(self, position: int) -> int:
        end = self._text.find("\n", position)
        return len(self._text) if end < 0 else end

    def _statement(self, position: int) -> int | None:
        """Rewrite the beginning of a statement; return where to go on, `None` if it is older."""
        if found := HEADER.match(self._text, position):
            end = self._closed(found.end())
            self._blank(found.end(), end)
            return end
        if found := ALIAS.match(self._text, position):
            return self._alias(position, found.end())
        if found := EXCEPT.match(self._text, position):
            return self._except(found)
        return None

    def _alias(self, position: int, end: int) -> int | None:
        """Replace `type Name[T] = ...` by `pass`."""
        if self._text[end] == "[":
            end = self._closed(end)
            while self._text[end] in " \t":
                end += 1
            if self._text[end] != "=":
                return None
        end = self._statement_end(end)
        self._blank(position, end)
        self._out[position : position + 4] = "pass"
        return end

    def _except(self, found: re.Match[str]) -> int | None:
        """Put the names of `except A, B:` in parentheses."""
        end = self._statement_end(found.end(), until=":")
        names = self._text[found.end() : end]
        if "," not in names or re.search(r"\bas\b", names):
            return None
        self._out[found.end()] = "(" + self._out[found.end()]
        self._out[end - 1] += ")"
        return end

    def _statement_end(self, position: int, until: str = "\r\n;#") -> int:
        """Return where a statement ends; brackets and strings are passed over."""
        while position < len(self._text) and self._text[position] not in until:
            if self._text[position] in PAIRS:
                position = self._closed(position)
            elif found := STRING.match(self._text, position):
                position = _string_end(self._text, found)
            elif word := WORD.match(self._text, position):
                position = word.end()
            else:
                position += 2 if self._text[position] == "\\" else 1
        return position

    def _closed(self, position: int) -> int:
        """Return the place after the bracket that closes the one here."""
        return _closing(self._text, position) + 1

    def _blank(self, start: int, end: int) -> None:
        for number in range(start, end):
            if self._text[number] not in "\r\n":
                self._out[number] = " "

    def _string(self, position: int, found: re.Match[str]) -> int:
        """Rewrite one string that the running Python cannot read, and those that follow it."""
        end = _string_end(self._text, found)
        plain = FORMATTED.isdisjoint(found[1].lower())
        joined, self._joined = self._joined, True
        if not self._replaced and (plain or _is_readable(self._text[position:end])):
            return end
        self._replaced = True
        quotes = len(found[2])
        self._blank(position, end)
        if end - position == 2:
            return end  # `""`
        self._out[found.end() if plain else found.end() - 1] = "("
        if joined:
            self._out[position] = "+"
        self._out[end - 1] = ")"
        if plain:
            return end
        raw = "r" in found[1].lower()
        for start, stop, closing in _fields(self._text, found.end(), end - quotes, raw=raw):
            self._out[start:stop] = rewritten(self._text[start:stop])
            self._out[closing] = ","
        return end


def _is_readable(text: str) -> bool:
    try:
        ast.parse(f"({text})")
    except (SyntaxError, ValueError):
        return False
    return True


def _string_end(text: str, found: re.Match[str]) -> int:
    """Return where a string ends; a field may contain the quotes that are around it."""
    prefix, quote = found[1].lower(), found[2]
    position = found.end()
    while not text.startswith(quote, position):
        if (
            text[position] == "\\"
            and "r" not in prefix
            and text[position + 1 : position + 3] == "N{"
        ):
            position = text.index("}", position)
        elif text[position] == "\\":
            position += 1
        elif text[position] == "{" and not FORMATTED.isdisjoint(prefix):
            if text[position + 1] == "{":
                position += 1
            else:
                position = _closing(text, position)
        elif text[position] in "\r\n" and len(quote) == 1:
            raise IndexError(position)
        position += 1
    return position + len(quote)


def _closing(text: str, position: int) -> int:
    """Return where the bracket that opens here is closed."""
    closing = PAIRS[text[position]]
    position += 1
    while text[position] != closing:
        if text[position] in PAIRS:
            position = _closing(text, position)
        elif text[position] == "#":
            position = text.index("\n", position)
        elif found := STRING.match(text, position):
            position = _string_end(text, found) - 1
        elif word := WORD.match(text, position):
            position = word.end() - 1
        position += 1
    return position


def _fields(text: str, position: int, end: int, *, raw: bool) -> Iterator[tuple[int, int, int]]:
    """Yield where the value of each field begins and ends, and where the field ends."""
    while position < end:
        here = text[position]
        if here == "\\" and not raw:
            position = (
                text.index("}", position) if text[position + 1 :][:2] == "N{" else position + 1
            )
        elif here == "{" and text[position + 1] == "{":
            position += 1
        elif here == "{":
            closing = _closing(text, position)
            yield position + 1, _value_end(text, position + 1, closing), closing
            position = closing
        position += 1


def _value_end(text: str, position: int, closing: int) -> int:
    """Return where the value of a field ends: before `!r`, `:>8` and a final `=`."""
    start = position
    while position < closing:
        here = text[position]
        if here == ":" or (here == "!" and text[position + 1] != "="):
            break
        if here in PAIRS:
            position = _closing(text, position)
        elif found := STRING.match(text, position):
            position = _string_end(text, found) - 1
        elif text.startswith("lambda", position):
            break  # it is in parentheses, or not Python
        position += 1
    said = text[start:position].rstrip()
    if said.endswith("=") and not said.endswith(("==", "!=", "<=", ">=")):
        return start + len(said) - 1
    return position
