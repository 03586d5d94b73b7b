"""The answer as one HTML page that needs nothing else."""

from __future__ import annotations

import html
from typing import Any

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
pre{background:#8881;padding:1rem;overflow-x:auto}table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #8884;vertical-align:top}
:root{color-scheme:light dark}
"""
_COLUMNS = ("rank", "owner", "type", "len", "per_round", "bytes_per_round", "file", "line", "holds")


def page(record: dict[str, Any], text: str) -> str:
    """Return a page with the words of the answer and a table of the suspects."""
    head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in _COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_cell(suspect[name])}</td>" for name in _COLUMNS) + "</tr>"
        for suspect in record["suspects"]
    )
    table = f"<table><tr>{head}</tr>{rows}</table>" if rows else ""
    title = f"floodline soak: {record['verdict']}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{html.escape(title)}</h1><pre>{html.escape(text)}</pre>"
        f"{table}</html>\n"
    )


def _cell(value: object) -> str:
    return html.escape("" if value is None else str(value))
