from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from typing import get_args

import pytest

from floodline.errors import ConfigError
from floodline.memory import PROBES, measure, rss
from floodline.memory._measuring import probes, psutil_figures
from floodline.memory._measuring.statm import Statm

linux = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")  # noqa: PTH110
PAGE = os.sysconf("SC_PAGE_SIZE")


def test_a_type_checker_knows_the_name_of_every_probe():
    assert get_args(probes.ProbeName) == tuple(PROBES)


def test_all_probes_answer_a_number_or_none():
    found = measure()
    assert found.keys() == PROBES.keys()
    assert all(value is None or value >= 0 for value in found.values())
    assert found["rss"] > 1_000_000
    assert found["vsz"] >= found["rss"]
    assert found["machine_memory"] > found["rss"]


def test_some_probes_can_be_asked_by_name():
    assert measure("threads", "open_files").keys() == {"threads", "open_files"}


def test_an_unknown_probe_is_named_together_with_the_known_ones():
    with pytest.raises(ConfigError, match="unknown probe 'rrs'; choose one of rss, vsz"):
        measure("rrs")


def alone(code):
    """Run this in a process of its own: here, what earlier tests left may end at any moment."""
    code = f"from floodline.memory._measuring import probes\nrss = probes.rss\n{code}"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_rss_sees_what_is_allocated():
    assert alone("""
before = rss()
block = bytearray(64 << 20)
assert 16 << 20 < rss() - before < 1 << 30, "pages are no bytes"
""")


def test_allocated_blocks_see_new_objects():
    assert alone("""
before = probes.allocated_blocks()
kept = [object() for _ in range(10_000)]
assert probes.allocated_blocks() >= before + len(kept)
""")


def test_the_collector_is_counted():
    before = probes.gc_collections()
    gc.collect()
    assert probes.gc_collections() > before
    assert probes.gc_pending() >= 0


def test_threads_are_counted():
    assert alone("""
import threading
done = threading.Event()
before = probes.threads()
threading.Thread(target=done.wait).start()
try:
    assert probes.threads() == before + 1
    assert probes.threads("/nowhere") == threading.active_count() == 2
finally:
    done.set()
""")


def test_threads_are_those_of_python_where_proc_is_missing(monkeypatch):
    monkeypatch.setattr(threading, "active_count", lambda: 7)
    assert probes.threads("/nowhere") == 7


def test_open_files_are_counted():
    assert alone("""
import os
before = probes.open_files()
with open(os.devnull) as file:
    assert probes.open_files() == before + 1
assert probes.open_files() == before
""")


def test_open_files_are_asked_of_psutil_where_no_folder_lists_them():
    assert probes.open_files(("/nowhere",)) > 0
    assert alone("""
probes.open_files(("/nowhere",))
assert abs(probes.open_files(("/nowhere",)) - probes.open_files()) <= 2
""")


def test_tasks_of_all_loops_are_counted():
    async def main():
        gc.collect()  # tasks of loops that have ended
        before = probes.asyncio_tasks()
        tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(10)]
        during = probes.asyncio_tasks()
        await asyncio.gather(*tasks)
        return during - before

    assert asyncio.run(main()) == 10


def test_there_are_no_tasks_before_asyncio_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "asyncio.tasks", raising=False)
    assert probes.asyncio_tasks() == 0


def test_tasks_are_unknown_where_python_does_not_tell(monkeypatch):
    monkeypatch.setitem(sys.modules, "asyncio.tasks", object())
    assert probes.asyncio_tasks() is None


def test_without_proc_psutil_answers_about_the_same(monkeypatch):
    usual = rss(), probes.vsz(), probes.machine_memory()
    monkeypatch.setattr(probes.statm, "exists", False)
    monkeypatch.delattr(os, "sysconf")
    assert usual[0] / 2 < rss() < usual[0] * 2
    assert usual[1] / 2 < probes.vsz() < usual[1] * 2
    assert probes.machine_memory() == pytest.approx(usual[2], rel=0.05)


def test_handles_count_as_open_files_on_windows(monkeypatch):
    class Process:
        def num_handles(self):
            return 7

    monkeypatch.setattr(psutil_figures, "_process", Process)
    assert psutil_figures.open_files() == 7
    monkeypatch.setattr(psutil_figures, "_process", object)
    assert psutil_figures.open_files() is None


def test_the_probes_bring_no_third_party_module():
    code = "import sys; import floodline.memory as m; m.measure(); print('psutil' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(not probes.statm.exists)


class TestStatm:
    def test_keeps_its_file_open(self, tmp_path):
        file = tmp_path / "statm"
        file.write_text("100 10 5 1 0 20 0\n")
        statm = Statm(str(file))
        assert (statm.size(), statm.resident()) == (100 * PAGE, 10 * PAGE)
        fd = statm._fd
        file.write_text("200 20 5 1 0 20 0\n")
        assert (statm.size(), statm.resident()) == (200 * PAGE, 20 * PAGE)
        assert statm._fd == fd
        statm.start_anew()

    def test_opens_it_again_if_somebody_closed_it(self, tmp_path):
        file = tmp_path / "statm"
        file.write_text("100 10 5 1 0 20 0\n")
        statm = Statm(str(file))
        statm.resident()
        os.close(statm._fd)
        assert (statm.size(), statm.resident()) == (100 * PAGE, 10 * PAGE)
        statm.start_anew()

    def test_leaves_its_number_to_whom_it_belongs_by_now(self, tmp_path):
        file, other = tmp_path / "statm", tmp_path / "other"
        file.write_text("100 10 5 1 0 20 0\n")
        other.write_text("something else\n")
        statm = Statm(str(file))
        statm.resident()
        number = statm._fd
        with other.open("rb") as stranger:
            os.dup2(stranger.fileno(), number)
            assert (statm.size(), statm.resident()) == (100 * PAGE, 10 * PAGE)
            assert statm._fd != number
            own = statm._fd
            os.dup2(stranger.fileno(), own)
            statm.start_anew()
            for fd in (number, own):
                assert os.read(fd, 9) is not None  # still open
                os.close(fd)

    def test_short_lines_are_not_believed(self, tmp_path):
        file, other = tmp_path / "statm", tmp_path / "other"
        file.write_text("100 10 5 1 0 20 0\n")
        other.write_text("1 2 3\n")
        statm = Statm(str(file))
        statm.resident()
        number = statm._fd
        with other.open("rb") as stranger:
            os.dup2(stranger.fileno(), number)
        assert (statm.size(), statm.resident()) == (100 * PAGE, 10 * PAGE)
        os.close(number)
        statm.start_anew()

    def test_starting_anew_before_the_first_reading_does_nothing(self, tmp_path):
        statm = Statm(str(tmp_path / "missing"))
        assert not statm.exists
        statm.start_anew()


@linux
def test_a_forked_child_reads_its_own_size():
    code = """
import os
from floodline.memory import rss
block = bytearray(64 << 20)
before = rss()
if os.fork() == 0:
    del block
    ok = before - rss() > 32 << 20
    os._exit(0 if ok else 1)
_, status = os.wait()
assert rss() >= before - (8 << 20)
raise SystemExit(os.waitstatus_to_exitcode(status))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
