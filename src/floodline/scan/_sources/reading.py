"""Reads files into facts, or takes them from the cache; a tree lives for one file only."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from floodline.scan._facts.reasons import Reason
from floodline.scan._sources.cache import Cache
from floodline.scan._sources.comments import Comment
from floodline.scan._sources.content import UNREADABLE, content_of, facts_of, why_unreadable
from floodline.scan._sources.files import Otherwise, Skip, Skipped, Source, sources

if TYPE_CHECKING:
    from floodline.scan._facts.model import FileFacts
    from floodline.scan._sources.worker import Answer

Progress = Callable[[int, int], None]
Said = tuple["FileFacts", list[Comment]]


class Reading:
    """The files below some paths: listed at once, read when they are needed."""

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        exclude: Sequence[str] = (),
        cache: Cache | None = None,
        progress: Progress | None = None,
        jobs: int | None = 1,
    ) -> None:
        self.facts: list[FileFacts] = []
        self.comments: list[Comment] = []
        self.skipped: list[Skipped] = []
        self.otherwise: list[Otherwise] = []  # files that this Python cannot parse, but were read
        self.exhausted = False  # True if memory ran out: the machine is to blame, not a file
        self._keys: dict[str, bytes] = {}
        self._cache = cache
        self._progress = progress
        self._jobs = jobs
        self._files: list[Source] = []
        for source in sources(paths, exclude):
            if isinstance(source, Skipped):
                self.skipped.append(source)
            else:
                self._files.append(source)

    def digest(self) -> bytes:
        """Return a key of all files' content, as read if it was; `b""` without a cache."""
        if self._cache is None:
            return b""
        parts = [f"{s.path}\0{s.why}".encode(errors="replace") for s in self.skipped]
        for source in self._files:
            parts.append(f"{source.shown}\0{source.module}".encode(errors="replace"))
            try:
                read = self._keys.get(source.shown)
                parts.append(read or self._cache.key(source.path.read_bytes()))
            except OSError as error:
                parts.append(str(error).encode(errors="replace"))
        return self._cache.key(*parts)

    def read(self) -> None:
        """Read every file; one that cannot be read is skipped, with the reason."""
        told: dict[int, Said | Reason] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about the code that is read are not ours
            with closing(self._all()) as everything:  # an interrupt must end the workers
                for number, said in everything:
                    told[number] = said
                    if self._progress:
                        self._progress(len(told), len(self._files))
            broken = [number for number, said in told.items() if _is_syntax_error(said)]
            if broken:
                told.update(self._again(sorted(broken)))
        for number, source in enumerate(self._files):
            said = told.pop(number)
            if isinstance(said, Reason):
                self.skipped.append(Skipped(source.shown, said))
            else:
                self._note(*said)

    def _note(self, facts: FileFacts, notes: list[Comment]) -> None:
        self.facts.append(facts)
        self.comments += notes
        if facts.newer:
            from floodline.scan._sources.second_reading import how_read

            self.otherwise += filter(None, [how_read(facts)])

    def _again(self, numbers: list[int]) -> Iterator[tuple[int, Said]]:
        """Read what this Python cannot parse: with a newer one, or as far as possible."""
        from floodline.scan._sources.encoding import pack_facts
        from floodline.scan._sources.second_reading import read_by_newer_python, read_tolerantly

        files = {number: self._files[number] for number in numbers}
        salt = self._cache.salt if self._cache else None
        for number, found in read_by_newer_python(files, salt):
            del files[number]
            if self._cache:
                self._cache.put(found.key, pack_facts(found.facts, found.comments))
            yield number, (found.facts, found.comments)
        for number, source in files.items():
            with suppress(*UNREADABLE):
                found = read_tolerantly(content_of(source.path), source)
                if found.partly:
                    self.otherwise.append(Otherwise(source.shown, found.partly))
                yield number, (found.facts, found.comments)

    def _all(self) -> Generator[tuple[int, Said | Reason], None, None]:
        """Yield what each file says with its number: first what is cached, then the rest."""
        missing = list(range(len(self._files)))
        if self._jobs != 1:
            from floodline.scan._sources.workers import worker_count  # takes long to import

            if self._cache:
                missing = yield from self._known_here(missing)
            count = worker_count(self._jobs, sum(self._files[n].size for n in missing))
            if count:
                yield from self._helped(missing, count)
                return
        yield from self._here(missing)

    def _known_here(
        self, numbers: list[int]
    ) -> Generator[tuple[int, Said | Reason], None, list[int]]:
        """Yield what is cached, and return the numbers of the rest."""
        missing = []
        for number in numbers:
            source = self._files[number]
            known = None
            with suppress(*UNREADABLE):
                known = self._cached(source, content_of(source.path))
            if known:
                yield number, known
            else:
                missing.append(number)
        return missing

    def _cached(self, source: Source, data: bytes) -> Said | None:
        if not self._cache:
            return None
        from floodline.scan._sources.encoding import unpack_facts

        key = self._keys[source.shown] = self._cache.key(data)
        if (known := self._cache.get(key)) is not None:
            with suppress(ValueError):  # damaged
                return unpack_facts(known, source.shown, source.module)
        return None

    def _here(self, numbers: Iterable[int]) -> Iterator[tuple[int, Said | Reason]]:
        """Read files in this process."""
        for number in numbers:
            source = self._files[number]
            try:
                yield number, self._said(source)
            except UNREADABLE as error:
                self.exhausted = self.exhausted or isinstance(error, MemoryError)
                yield number, why_unreadable(error)

    def _said(self, source: Source) -> Said:
        data = content_of(source.path)
        if known := self._cached(source, data):
            return known
        facts, notes = facts_of(data, source.shown, source.module)
        if self._cache:
            from floodline.scan._sources.encoding import pack_facts

            self._cache.put(self._keys[source.shown], pack_facts(facts, notes))
        return facts, notes

    def _helped(self, numbers: list[int], count: int) -> Iterator[tuple[int, Said | Reason]]:
        """Read files here and in worker processes; here also what a worker left undone."""
        from floodline.scan._sources.workers import Job, Workers

        jobs = [Job(n, self._files[n].path, self._files[n].size) for n in numbers]
        jobs.sort(key=lambda job: -job.size)  # so that all are done at about the same time
        salt = self._cache.salt if self._cache else None
        with Workers(count) as workers:
            for job, answer in workers.read(jobs, salt, helped=True):
                if answer is None:
                    yield from self._here([job.number])
                else:
                    yield job.number, self._answered(self._files[job.number], answer)

    def _answered(self, source: Source, answer: Answer) -> Said | Reason:
        from floodline.scan._sources.encoding import unpack_facts

        if answer.key:
            self._keys[source.shown] = answer.key
        if answer.facts is None:
            self.exhausted = self.exhausted or answer.exhausted
            return Skip[answer.ground](*answer.values)
        if self._cache:
            self._cache.put(answer.key, answer.facts)
        return unpack_facts(answer.facts, source.shown, source.module)


def _is_syntax_error(said: Said | Reason) -> bool:
    return isinstance(said, Reason) and said.ground is Skip.SYNTAX_IN_LINE
