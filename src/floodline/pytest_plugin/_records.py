"""What pytest records during a test, reset after each round."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from floodline.pytest_plugin._mocks import Mocks


class Records:
    """What pytest and mocks record, reset after each round to what it was before the first.

    Their growth is not mistaken for the program's, and each round finds them as a single run would.
    """

    def __init__(self, item: pytest.Item) -> None:
        manager = item.config.pluginmanager
        logs = manager.get_plugin("logging-plugin")
        handlers = (logs.caplog_handler, logs.report_handler) if logs else ()
        self._logs = [(one, len(one.records), one.stream.tell()) for one in handlers]
        self._capture: Any = manager.get_plugin("capturemanager")
        self._properties = item.user_properties
        self._recorded = len(self._properties)
        arguments = getattr(item, "funcargs", {})
        self._patches: Any = arguments.get("monkeypatch")
        self._patched = self._patch_counts()
        self._warned = Warned(fresh="recwarn" in arguments)
        self._mocks = Mocks()
        reporter: Any = manager.get_plugin("terminalreporter")
        self._subtests = Subtests(reporter.stats if reporter else {})
        self.writer: Any = getattr(reporter, "_tw", None)  # knows the line that it is writing
        for name, text in zip(("stdout", "stderr"), self._read(), strict=True):
            if text:  # printed before the block
                item.add_report_section("call", name, text)

    def put_back(self) -> None:
        """Drop what the last round left behind."""
        for handler, records, size in self._logs:
            del handler.records[records:]
            if handler.stream.tell() > size:
                handler.stream.seek(size)
                handler.stream.truncate()
        self._read()
        del self._properties[self._recorded :]
        self._undo_patches()
        self._warned.put_back()
        self._mocks.put_back()
        self._subtests.put_back()

    def _read(self) -> tuple[str, str]:
        if self._capture is None:
            return "", ""
        if self._capture._capture_fixture is not None:  # capsys and the like
            self._capture._capture_fixture.readouterr()
        return tuple(map(str, self._capture.read_global_capture()))  # type: ignore[return-value]  # two of them

    def _patch_counts(self) -> tuple[int, int]:
        if self._patches is None:
            return 0, 0
        return len(self._patches._setattr), len(self._patches._setitem)

    def _undo_patches(self) -> None:
        if self._patch_counts() == self._patched:
            return
        attributes, items = self._patched
        last: Any = pytest.MonkeyPatch()
        last._setattr[:], last._setitem[:] = (
            self._patches._setattr[attributes:],
            self._patches._setitem[items:],
        )
        del self._patches._setattr[attributes:], self._patches._setitem[items:]
        last.undo()


class Warned:
    """The list of recorded warnings: one per place stays, or none if `fresh`."""

    def __init__(self, *, fresh: bool) -> None:
        record = getattr(getattr(warnings, "_showwarnmsg_impl", None), "__self__", None)
        self._list: list[Any] = record if type(record) is list else []
        self._before = len(self._list)
        self._places: set[tuple[Any, ...]] = set()
        self._fresh = fresh

    def put_back(self) -> None:
        if self._fresh:
            del self._list[self._before :]
        for one in self._list[self._before :]:
            place = (one.category, one.filename, one.lineno)
            if place not in self._places:
                self._places.add(place)
                self._before += 1
                self._list[self._before - 1] = one
        del self._list[self._before :]


class Subtests:
    """The reports of subtests, the same in each round; a failed one ends the soak."""

    def __init__(self, stats: dict[str, list[Any]]) -> None:
        self._stats = stats
        self._before = {kind: len(reports) for kind, reports in stats.items()}

    def put_back(self) -> None:
        __tracebackhide__ = True
        failed = False
        for kind, reports in self._stats.items():
            begin = self._before.get(kind, 0)
            reports[begin:] = [one for one in reports[begin:] if getattr(one, "failed", True)]
            failed |= any(getattr(one, "failed", False) for one in reports[begin:])
        if failed:
            pytest.fail("a subtest failed", pytrace=False)
