"""The answer as one HTML page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from floodline._units import format_size
from floodline.soak._chart import Line, chart

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--dim:#5b6470;--page:#fff;--card:#f4f6f8;--rule:#d6dbe1;
--growing:#b3261e;--bounded:#1a6b3c;--undecided:#8a5a00;
--a:#1c2024;--b:#1f6feb;--c:#c2410c;--d:#8250df;--e:#0f766e;--f:#8a6d00}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--dim:#9aa4b0;--page:#14171a;--card:#1e2327;
--rule:#39414a;--growing:#ff8a80;--bounded:#6fd39a;--undecided:#f2c14e;
--a:#e6e9ed;--b:#6cb0ff;--c:#ff9a62;--d:#c3a3ff;--e:#5fd4c4;--f:#e3c85c}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:0 auto;padding:1rem;
background:var(--page);color:var(--ink);overflow-wrap:anywhere}
header{border-left:.5rem solid var(--mark);padding:.2rem 0 .2rem 1rem}
h1{font-size:1.6rem;line-height:1.2;margin:0}h1 b{color:var(--mark)}h2{font-size:1.15rem}
header p{margin:.3rem 0 0}.dim{color:var(--dim)}code,pre{font:.9em ui-monospace,monospace}
.whole{display:inline-block}
pre{background:var(--card);padding:1rem;overflow-x:auto;white-space:pre-wrap}
section.card{background:var(--card);border-radius:.5rem;padding:.1rem 1rem 1rem;margin:1rem 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:0}
dt{color:var(--dim)}dd{margin:0}
@media(max-width:32rem){dl{display:block}dd{margin:0 0 .5rem}}
figure{margin:1rem 0}figcaption{font-weight:600}
.plot{position:relative;border-left:1px solid var(--rule);border-bottom:1px solid var(--rule)}
.plot svg{display:block;width:100%;height:11rem;overflow:visible}
.plot span{position:absolute;left:.3rem;font-size:.8rem;color:var(--dim)}
.top{top:-.2rem}.low{bottom:0}
.rounds{display:flex;justify-content:space-between;font-size:.8rem;color:var(--dim)}
polyline{fill:none;stroke-width:2;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.zero{stroke:var(--rule);vector-effect:non-scaling-stroke}
figure ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:.4rem 0}
figure i{display:inline-block;width:.9rem;height:.9rem;border-radius:.2rem;margin-right:.4rem;
vertical-align:-.1rem}
.a{stroke:var(--a);background:var(--a)}.b{stroke:var(--b);background:var(--b)}
.c{stroke:var(--c);background:var(--c)}.d{stroke:var(--d);background:var(--d)}
.e{stroke:var(--e);background:var(--e)}.f{stroke:var(--f);background:var(--f)}
"""
# what each is called, and the colour of its line; the last is what the others do not explain
_KINDS = {
    "rss": ("resident", "a"),
    "arenas": ("Python objects", "b"),
    "malloc_used": ("malloc in use", "c"),
    "malloc_free": ("malloc free, held", "d"),
    "malloc_mapped": ("mapped by malloc", "e"),
}
_REST = ("not explained", "f")
_NEXT = {
    "growing": "Open the line that feeds the first suspect, and let something remove what it adds: "
    "a bound (<code>BoundedMap</code>, <code>Sessions</code>), an end (<code>finally</code>), or "
    "the weaker hold that was meant. Then soak again.",
    "native": "No Python object grows, so no name can be given: {why}",
    "bounded": "Nothing to do. To keep it so, put the scenario into a test with "
    "<code>@pytest.mark.soak</code>.",
    "undecided": "Run more rounds: <code class='whole'>floodline soak --rounds {rounds} …</code>",
    "failed": "Make the scenario run through once; then soak again.",
}


def page(record: Mapping[str, Any], text: str) -> str:
    """Return the page: the verdict, what to do next, memory by kind, each suspect, the words."""
    verdict = "failed" if record["errors"] else record["verdict"]
    mark = {"failed": "growing"}.get(verdict, verdict)
    measured = record["rounds"] - record["warmup"]
    where = f" · growth in {record['where']}" if record["where"] else ""
    parts = [
        f'<header style="--mark:var(--{mark})"><h1>soak: <b>{verdict}</b></h1>',
        f"<p>{_text(text.splitlines()[0] if text else '')}</p>",
        f'<p class="dim">{measured} rounds measured after {record["warmup"]} to warm up'
        f"{_text(where)} · {_text(record['tool'])} · Python {_text(record['python'])}</p></header>",
        f"<h2>What to do next</h2><p>{_next(record, verdict)}</p>",
        _memory(record.get("series") or {}),
        *_suspects(record),
        f"<h2>In words</h2><pre>{_text(text)}</pre>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>floodline soak: {verdict}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _next(record: Mapping[str, Any], verdict: str) -> str:
    needed = record["needed"]
    why = _text(needed["why"] or "")
    if verdict == "growing" and not record["suspects"]:
        return _NEXT["native"].format(why=why)
    said = _NEXT[verdict].format(rounds=needed["rounds"] or 2 * record["rounds"])
    return f"{why}. {said}" if why and verdict == "undecided" else said


def _memory(series: Mapping[str, Any]) -> str:
    """Draw how much each kind of memory gained since the first sample."""
    if not series.get("rss"):
        return ""
    gained = {name: [v - series[name][0] for v in series[name]] for name in _KINDS}
    total, *known = gained.values()
    rest = [all_of - sum(part) for all_of, *part in zip(total, *known, strict=True)]
    lines = [Line(*_KINDS[name][:1], gained[name], _KINDS[name][1]) for name in _KINDS]
    lines.append(Line(_REST[0], rest, _REST[1]))
    drawn = chart("Memory gained since the first sample", series["rounds"], lines, _bytes)
    return drawn and f"<h2>Memory over rounds</h2>{drawn}"


def _suspects(record: Mapping[str, Any]) -> list[str]:
    series = record.get("series") or {}
    values = series.get("suspects") or []
    cards = []
    for number, one in enumerate(record["suspects"]):
        drawn = ""
        if number < len(values):
            line = Line("length", values[number], "b")
            drawn = chart("Length over rounds", series["rounds"], [line], lambda n: f"{n:,.0f}")
        cards.append(_card(one, drawn))
    return ["<h2>Suspects</h2>", *cards] if cards else []


def _card(one: Mapping[str, Any], drawn: str) -> str:
    fed = f"{one['file']}:{one['line']}" if one["file"] else ""
    static = " (read in the source, not seen)" if one["line_source"] == "static" else ""
    rows = {
        "grows": f"+{one['per_round']:g} a round, {_bytes(one['bytes_per_round'])} a round",
        "now": f"{one['type']}, {one['len']:,} long",
        "reached by": one["path"],
        "fed at": fed + static if fed else "",
        "holds": one["holds"],
        "echoed by": ", ".join(one["echoes"]),
    }
    listed = "".join(f"<dt>{k}</dt><dd>{_text(v)}</dd>" for k, v in rows.items() if v)
    head = f"{one['rank']}. <code>{_text(one['owner'])}</code>"
    return f'<section class="card"><h3>{head}</h3><dl>{listed}</dl>{drawn}</section>'


def _bytes(size: float) -> str:
    return f"{'-' if size < 0 else '+'}{format_size(abs(size))}"


def _text(value: object) -> str:
    return html.escape(str(value))
