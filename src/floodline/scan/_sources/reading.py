"""Reads files into facts, or takes them from the cache; a tree lives for one file only."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from floodline.scan._facts.reasons import Reason
from floodline.scan._sources.cache import Cache
from floodline.scan._sources.comments import Comment, comments
from floodline.scan._sources.files import Skip, Skipped, Source, decoded, sources

if TYPE_CHECKING:
    from floodline.scan._facts.model import FileFacts

MANY_BYTES = 8 * 1024 * 1024
MANY_ITEMS = 400_000  # a data table: its tree would take 100 MB and say nothing
Progress = Callable[[int, int], None]


class Reading:
    """The files below some paths: listed at once, read when they are needed."""

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        exclude: Sequence[str] = (),
        cache: Cache | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.facts: list[FileFacts] = []
        self.comments: list[Comment] = []
        self.skipped: list[Skipped] = []
        self.exhausted = False  # True if memory ran out: the machine is to blame, not a file
        self._keys: dict[str, bytes] = {}
        self._cache = cache
        self._progress = progress
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about the code that is read are not ours
            for number, source in enumerate(self._files, 1):
                for reason in self._read_one(source):
                    self.skipped.append(Skipped(source.shown, reason))
                if self._progress:
                    self._progress(number, len(self._files))

    def _read_one(self, source: Source) -> Iterator[Reason]:
        """Read one file, or yield why that is not possible."""
        try:
            size = source.path.stat().st_size
            if size > MANY_BYTES:
                yield Skip.TOO_LARGE(str(size), str(MANY_BYTES))
                return
            data = source.path.read_bytes()
            if (items := data.count(b",")) > MANY_ITEMS:
                yield Skip.TABLE(str(items), str(MANY_ITEMS))
                return
            self._read_content(source, data)
        except SyntaxError as error:
            if error.lineno:
                yield Skip.SYNTAX_IN_LINE(str(error.lineno), error.msg)
            else:
                yield Skip.SYNTAX(error.msg)
        except (RecursionError, MemoryError) as error:
            self.exhausted = self.exhausted or isinstance(error, MemoryError)
            yield Skip.TOO_DEEP()
        except UnicodeDecodeError as error:
            yield Skip.ENCODING(error.encoding, error.reason, str(error.start))
        except OSError as error:
            yield Skip.SYSTEM(error.strerror or str(error))
        except (ValueError, LookupError) as error:
            yield Skip.NOT_SOURCE(str(error))

    def _read_content(self, source: Source, data: bytes) -> None:
        # a cached report is shown without any of this, and importing it takes longer
        from floodline.scan._frontends.python.reader import read
        from floodline.scan._sources.encoding import pack_facts, unpack_facts

        key = self._keys[source.shown] = self._cache.key(data) if self._cache else b""
        if self._cache and (known := self._cache.get(key)) is not None:
            with suppress(ValueError, TypeError, EOFError, IndexError):
                facts, notes = unpack_facts(known, source.shown, source.module)
                self.facts.append(facts)
                self.comments += notes
                return
        text = decoded(data)
        facts = read(text, source.shown, source.module)
        notes = comments(source.shown, text)
        self.facts.append(facts)
        self.comments += notes
        if self._cache:
            self._cache.put(key, pack_facts(facts, notes))
