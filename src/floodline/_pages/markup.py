"""HTML from nested calls; everything that is not markup is escaped."""

from __future__ import annotations

from html import escape

VOID = frozenset({"meta", "br", "img", "link"})


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return one element; `class_` is class, `aria_label` is aria-label, None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: object) -> Markup:
    """Join parts; None is skipped, and lists are flattened."""
    return Markup("".join(_text(child) for child in children))


def _text(child: object) -> str:
    if child is None:
        return ""
    if isinstance(child, (list, tuple)):
        return join(*child)
    return child if isinstance(child, Markup) else escape(str(child))
