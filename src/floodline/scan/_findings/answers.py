"""Matches findings with the comments that answer them, and reports comments that are wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from floodline.scan._facts.reasons import Ground, Reason
from floodline.scan._findings.finding import Finding, Status
from floodline.scan._findings.rule import Rule
from floodline.scan._sources.comments import Comment


class Wrong(Ground):
    """What can be wrong with a comment."""

    NO_BOUND = "say what bounds it: # floodline: bounded[by what]"
    NO_RULES = "name the rules: # floodline: ignore[FLD101] reason"
    NO_SUCH_RULE = "there is no rule {}; `floodline explain` lists the rules"
    NO_REASON = "give a reason: # floodline: ignore[FLD101] reason"
    ANSWERS_NOTHING = "this comment answers no finding; remove it"


class Problem(NamedTuple):
    """A comment that is wrong, or that answers nothing."""

    path: str
    line: int
    reason: Reason

    @property
    def says(self) -> str:
        """Return what is wrong, and what to do about it."""
        return str(self.reason)


def answered(
    findings: list[Finding],
    written: list[Comment],
    decided: dict[str, list[tuple[str, int]]],
    rules: Mapping[str, Rule],
    unasked: frozenset[str] = frozenset(),
) -> tuple[list[Finding], list[Problem]]:
    """Mark the findings that a comment answers, and report comments that are wrong or unused.

    `decided` maps a fingerprint to the lines where a comment for it may be: where it grows and
    where it is created. A comment for rules that did not run (`unasked`) is not a problem.
    """
    by_place = {(comment.path, comment.line): comment for comment in written}
    used: set[Comment] = set()
    result = []
    for finding in findings:
        places = [(finding.path, finding.line), *decided.get(finding.fingerprint, ())]
        rule = rules[finding.rule]
        found = next((c for c in map(by_place.get, places) if c and _answers(c, rule)), None)
        if found:
            used.add(found)
            finding = finding._replace(status=Status.SUPPRESSED)
        result.append(finding)
    asked = [c for c in written if not (c.reason and c.codes and c.codes <= unasked)]
    return result, list(_problems(asked, used, rules))


def _answers(comment: Comment, rule: Rule) -> bool:
    if not comment.reason:
        return False
    if comment.verb == "bounded":
        return rule.boundable
    return rule.code in comment.codes


def _problems(
    written: Iterable[Comment], used: set[Comment], rules: Mapping[str, Rule]
) -> Iterable[Problem]:
    for comment in written:
        if comment.verb == "noqa" or comment in used:
            continue
        unknown = sorted(comment.codes - rules.keys())
        if comment.verb == "bounded" and not comment.reason:
            reason = Wrong.NO_BOUND()
        elif comment.verb == "ignore" and not comment.codes:
            reason = Wrong.NO_RULES()
        elif unknown:
            reason = Wrong.NO_SUCH_RULE(unknown[0])
        else:
            reason = Wrong.ANSWERS_NOTHING() if comment.reason else Wrong.NO_REASON()
        yield Problem(comment.path, comment.line, reason)
