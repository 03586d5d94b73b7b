"""Reads files again that the running Python cannot parse: most have the syntax of a newer one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from floodline.scan._facts.model import REWRITTEN, FileFacts
from floodline.scan._facts.reasons import Reason
from floodline.scan._frontends.python.newer_syntax import rewritten
from floodline.scan._frontends.python.reader import read
from floodline.scan._frontends.python.recovery import recovered
from floodline.scan._sources.comments import Comment, comments
from floodline.scan._sources.encoding import unpack_facts
from floodline.scan._sources.files import How, Otherwise, Source, decoded
from floodline.scan._sources.workers import Job, Workers

LATEST = 20  # the minor versions that are looked for
LINES = {True: "{} line was", False: "{} lines were"}


class Again(NamedTuple):
    """What a file says after all."""

    facts: FileFacts
    comments: list[Comment]
    key: bytes = b""  # of the content that another Python read
    partly: Reason | None = None  # what was left out


def newer_pythons() -> Iterator[tuple[str, str]]:
    """Yield the commands on the path that may be a newer Python, with their versions."""
    for minor in range(LATEST, sys.version_info.minor, -1):
        if command := shutil.which(f"python3.{minor}"):
            yield command, f"3.{minor}"


def read_by_newer_python(
    files: Mapping[int, Source], salt: bytes | None
) -> Iterator[tuple[int, Again]]:
    """Read files with the newest Python that starts; a command may be there and not work."""
    jobs = [Job(number, source.path, source.size) for number, source in files.items()]
    for command, version in newer_pythons():
        started = False
        with Workers(1, command) as workers:
            for job, answer in workers.read(jobs, salt):
                started = started or answer is not None
                if answer is None or answer.facts is None:
                    continue
                source = files[job.number]
                with suppress(ValueError):  # damaged
                    facts, notes = unpack_facts(answer.facts, source.shown, source.module)
                    yield job.number, Again(facts._replace(newer=version), notes, answer.key)
        if started:
            return


def read_tolerantly(data: bytes, source: Source) -> Again:
    """Read a file without a newer Python; raises a `SyntaxError` if too little of it is left."""
    text = decoded(data)
    newer = rewritten(text)
    with suppress(SyntaxError):
        facts = read(newer, source.shown, source.module)
        return Again(facts._replace(newer=REWRITTEN), comments(source.shown, newer))
    found = recovered(newer)
    left_out = LINES[found.lines == 1].format(found.lines)
    why = How.PARTLY(str(found.error.lineno), found.error.msg, left_out)
    facts = read(found.text, source.shown, source.module)
    return Again(facts, comments(source.shown, found.text), partly=why)


def how_read(facts: FileFacts) -> Otherwise | None:
    """Return how a file with newer syntax was read, `None` for every other one."""
    if not facts.newer:
        return None
    how = How.REWRITTEN() if facts.newer == REWRITTEN else How.NEWER(facts.newer)
    return Otherwise(facts.path, how)
