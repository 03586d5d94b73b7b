"""The answers as Markdown, in the layout of an audit document."""

from __future__ import annotations

from collections.abc import Sequence

from floodline.scan._sources.files import shown
from floodline.verify._answers.answer import Answer, Evidence, Judgement, summary

UNCHECKED = "not checked (`--before REVISION`)"


def markdown(answers: Sequence[Answer]) -> str:
    """Write the answers as Markdown: a summary, then each claim with before, after and evidence."""
    lines = [
        "# Announced fixes",
        "",
        summary(answers),
        "",
        "| claim | file | limit | before | after |",
        "|---|---|---|---|---|",
        *(_row(answer) for answer in answers),
    ]
    for number, answer in enumerate(answers, 1):
        lines += ["", *_section(number, answer)]
    return "\n".join(lines)


def _row(answer: Answer) -> str:
    claim = answer.claim
    before = answer.before.verdict if answer.before else "–"
    cells = [
        _cell(claim.name), f"`{_cell(shown(claim.file))}`", f"{claim.limit} {claim.policy}",
        before, f"**{answer.verdict}**",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _section(number: int, answer: Answer) -> list[str]:
    claim = answer.claim
    containers = ", ".join(f"`{_cell(symbol)}`" for symbol in claim.symbols)
    lines = [
        f"## {number}. {claim.name}: {answer.verdict}",
        "",
        "| | |",
        "|---|---|",
        f"| File | `{_cell(_place(answer))}` |",
        f"| Container | {containers} |",
        f"| Claimed limit | {claim.limit}, {claim.policy} |",
        f"| Before | {_told(answer.before) if answer.before else UNCHECKED} |",
        f"| After | {_told(answer.static)} |",
    ]
    if answer.executed is not None:
        lines.append(f"| Executed | {_told(answer.executed)} |")
    lines += [f"| Verdict | **{answer.verdict}** |", "", "Evidence:", ""]
    return lines + [f"- `{each.at}`: {each.says}" for each in answer.evidence]


def _place(answer: Answer) -> str:
    """Return the file with the line that decides, if there is one."""
    file = shown(answer.claim.file)
    places = (each.at for each in answer.static.evidence if each.at.startswith(f"{file}:"))
    return next(places, file)


def _told(judged: Judgement) -> str:
    first: Evidence = judged.evidence[0]
    return f"{judged.verdict}: {_cell(first.says)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
