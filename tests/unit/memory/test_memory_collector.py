from __future__ import annotations

import gc
import subprocess
import sys
import threading

import pytest

from floodline.errors import ConfigError
from floodline.memory import GCController, MemoryTracker, _malloc_trim, trim_malloc
from memory_fakes import MIB, FakeMemory

PATIENCE = 100.0  # a safety net, not a measure


class Node:
    """Part of a ring, which only the collector can free."""


def make_rings(number):
    for _ in range(number):
        node = Node()
        node.me = node


@pytest.fixture(autouse=True)
def _collector_as_it_was():
    on = gc.isenabled()
    yield
    assert gc.isenabled() == on


def test_collecting_tells_objects_memory_and_pause():
    memory, times = FakeMemory(100), iter([1.0, 3.5, 10.0, 11.0])
    controller = GCController(probe=memory, clock=lambda: next(times), name="c")
    gc.collect()
    make_rings(10)

    class Freeing(Node):
        def __del__(self):
            memory.grow(-60)

    ring = Freeing()
    ring.me = ring
    del ring
    done = controller.collect()
    assert done.objects >= 11
    assert (done.reclaimed, done.seconds, done.trimmed) == (60, 2.5, False)
    controller.collect(0)
    stats = controller.stats()
    assert (stats.kind, stats.name, stats.collections, stats.reclaimed) == ("gc", "c", 2, 60)
    assert (stats.pause, stats.longest_pause, stats.paused) == (3.5, 2.5, False)
    assert stats.objects >= 11
    assert repr(controller) == "<GCController 'c': 2 collections>"


def test_memory_that_grew_meanwhile_is_not_reclaimed():
    sizes = iter([100, 100, 150])
    controller = GCController(probe=lambda: next(sizes))
    assert controller.collect().reclaimed == 0


def test_an_unknown_generation_is_refused():
    with pytest.raises(ConfigError, match="generation=3 does not exist; give 0, 1 or 2"):
        GCController().collect(3)


def test_check_collects_when_memory_grew_by_the_threshold():
    memory = FakeMemory(10 * MIB)
    controller = GCController(threshold="4 MiB", probe=memory)
    memory.grow(3 * MIB)
    assert controller.check() is None
    memory.grow(MIB)
    assert controller.check() is not None
    assert controller.check() is None  # counted from the last collection
    memory.grow(4 * MIB)
    assert controller.check() is not None


def test_growth_counts_from_the_lowest_size_seen():
    memory = FakeMemory(10 * MIB)
    controller = GCController(threshold="4 MiB", probe=memory)
    memory.size = 2 * MIB
    assert controller.check() is None
    memory.size = 7 * MIB
    assert controller.check() is not None


def test_aggressive_collects_always_and_trims():
    controller = GCController(aggressive=True)
    block = [bytes(100) for _ in range(500_000)]
    del block
    controller.check()
    controller.check()
    assert controller.stats().collections == 2


def test_without_a_threshold_check_does_nothing():
    controller = GCController(threshold=None, probe=FakeMemory())
    assert controller.check() is None


def test_it_collects_between_the_stages_of_a_tracker_until_told_to_stop():
    memory = FakeMemory(0)
    controller = GCController(threshold=100, probe=memory)
    tracker = MemoryTracker(probe=memory)
    end = controller.follow(tracker)
    with tracker.stage("small"):
        memory.grow(50)
    assert controller.stats().collections == 0
    with tracker.stage("large"):
        memory.grow(50)
    assert controller.stats().collections == 1
    end()
    with tracker.stage("larger"):
        memory.grow(500)
    assert controller.stats().collections == 1


def test_automatic_collection_is_off_inside_and_back_afterwards():
    controller = GCController()
    with controller as entered:
        assert entered is controller
        assert not gc.isenabled()
        assert controller.stats().paused
        with controller, GCController():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), controller:
        1 / 0  # noqa: B018  # raises


def test_automatic_collection_that_was_off_stays_off():
    gc.disable()
    try:
        with GCController():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_pauses_of_several_threads_overlap():
    controller = GCController()
    inside, go_on = threading.Event(), threading.Event()

    def other():
        with controller:
            inside.set()
            assert go_on.wait(PATIENCE)

    thread = threading.Thread(target=other)
    with controller:
        thread.start()
        assert inside.wait(PATIENCE)
    assert not gc.isenabled()  # the other is still inside
    go_on.set()
    thread.join()
    assert gc.isenabled()


def test_frozen_objects_are_spared():
    code = """
import gc
from floodline import GCController
controller = GCController()
frozen = controller.freeze()
assert frozen > 1000 and controller.stats().items == frozen
assert len(gc.get_objects()) < 1000
controller.unfreeze()
assert controller.stats().items == 0
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_trimming_gives_memory_back():
    if _malloc_trim._malloc_trim() is None:
        pytest.skip("this C library cannot trim")
    blocks = [bytearray(60_000) for _ in range(500)]
    keep = blocks[-1]
    del blocks
    assert trim_malloc() in (True, False)
    assert GCController(trim=True).collect().trimmed in (True, False)
    del keep


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_where_the_c_library_cannot_trim_nothing_happens(monkeypatch, error):
    import ctypes

    def missing(_):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", missing)
    _malloc_trim._malloc_trim.cache_clear()
    try:
        assert trim_malloc() is False
    finally:
        _malloc_trim._malloc_trim.cache_clear()


def test_a_forked_child_can_collect():
    code = """
import os
from floodline import GCController
controller = GCController()
with controller:
    if os.fork() == 0:
        controller.collect()
        os._exit(0)
_, status = os.wait()
raise SystemExit(os.waitstatus_to_exitcode(status))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
