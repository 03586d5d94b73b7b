from __future__ import annotations

import pytest

from floodline.memory import Cgroup, cgroup
from floodline.memory._measuring import probes
from floodline.memory._measuring.probes import cgroup_limit, cgroup_usage, psi_full, psi_some

MIB = 1 << 20
HUGE = 9223372036854771712  # how v1 says "no limit"


def write(root, files):
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")


def test_v2_gives_the_own_limit_and_the_working_set(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/app",
            "sys/fs/cgroup/app/memory.max": 512 * MIB,
            "sys/fs/cgroup/app/memory.current": 300 * MIB,
            "sys/fs/cgroup/app/memory.stat": f"anon 1\ninactive_file {100 * MIB}\nactive_file 7",
        },
    )
    assert cgroup(tmp_path) == Cgroup("/sys/fs/cgroup/app", 512 * MIB, 200 * MIB, 2)


def test_v2_the_lowest_limit_of_all_ancestors_binds_with_its_own_usage(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/pod/app/worker",
            "sys/fs/cgroup/pod/memory.max": 256 * MIB,
            "sys/fs/cgroup/pod/memory.current": 200 * MIB,
            "sys/fs/cgroup/pod/app/memory.max": 512 * MIB,
            "sys/fs/cgroup/pod/app/worker/memory.max": "max",
            "sys/fs/cgroup/pod/app/worker/memory.current": 10 * MIB,
        },
    )
    assert cgroup(tmp_path) == Cgroup("/sys/fs/cgroup/pod", 256 * MIB, 200 * MIB, 2)


def test_v2_the_throttling_line_counts_as_a_limit(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/app",
            "sys/fs/cgroup/app/memory.max": 512 * MIB,
            "sys/fs/cgroup/app/memory.high": 400 * MIB,
        },
    )
    assert cgroup(tmp_path).limit == 400 * MIB
    assert cgroup(str(tmp_path)) == cgroup(tmp_path)


def test_v2_without_any_limit_there_is_none(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a/b",
            "sys/fs/cgroup/a/memory.max": "max",
            "sys/fs/cgroup/a/b/memory.max": "max",
        },
    )
    assert cgroup(tmp_path) is None


def test_v2_in_a_container_the_root_of_the_mount_is_the_own_cgroup(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/../../elsewhere/on/the/host",
            "sys/fs/cgroup/memory.max": 128 * MIB,
            "sys/fs/cgroup/memory.current": 64 * MIB,
        },
    )
    assert cgroup(tmp_path) == Cgroup("/sys/fs/cgroup", 128 * MIB, 64 * MIB, 2)


def test_v1_gives_limit_and_working_set(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "5:cpu:/\n4:memory:/docker/abc\n0::/",
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": 512 * MIB,
            "sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": 300 * MIB,
            "sys/fs/cgroup/memory/docker/abc/memory.stat": (
                f"inactive_file 1\ntotal_inactive_file {50 * MIB}"
            ),
            "sys/fs/cgroup/memory/memory.limit_in_bytes": HUGE,
        },
    )
    expected = Cgroup("/sys/fs/cgroup/memory/docker/abc", 512 * MIB, 250 * MIB, 1)
    assert cgroup(tmp_path) == expected


def test_v1_the_huge_number_means_unlimited(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "4:cpuset,memory:/",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": HUGE,
        },
    )
    assert cgroup(tmp_path) is None


def test_v1_a_parent_may_have_the_lowest_limit(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/a/b",
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": 100 * MIB,
            "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": 200 * MIB,
        },
    )
    assert cgroup(tmp_path).limit == 100 * MIB


def test_missing_files_mean_no_limit(tmp_path):
    assert cgroup(tmp_path) is None
    assert psi_some(tmp_path) is None


def test_a_limit_without_usage_is_told_without_usage(tmp_path):
    write(tmp_path, {"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": MIB})
    assert cgroup(tmp_path).usage is None


def test_cache_above_the_charge_does_not_make_the_working_set_negative(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/",
            "sys/fs/cgroup/memory.max": 10 * MIB,
            "sys/fs/cgroup/memory.current": MIB,
            "sys/fs/cgroup/memory.stat": f"inactive_file {2 * MIB}",
        },
    )
    assert cgroup(tmp_path).usage == 0


def test_the_probes_of_limit_and_usage_are_those_of_the_cgroup_that_binds(monkeypatch):
    found = Cgroup("/x", 100, 60, 2)
    monkeypatch.setattr(probes.cgroup, "binding", lambda: found)
    assert (cgroup_limit(), cgroup_usage()) == (100, 60)
    monkeypatch.setattr(probes.cgroup, "binding", lambda: None)
    assert (cgroup_limit(), cgroup_usage()) == (None, None)


PRESSURE = "some avg10={} avg60=0.00 avg300=0.00 total=1\nfull avg10={} avg60=0.00 total=1"


def test_pressure_is_that_of_the_own_cgroup_if_there_is_one(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/app",
            "proc/pressure/memory": PRESSURE.format(1, 2),
            "sys/fs/cgroup/app/memory.pressure": PRESSURE.format("12.50", "3.25"),
        },
    )
    assert psi_some(tmp_path) == pytest.approx(12.5)
    assert psi_full(tmp_path) == pytest.approx(3.25)


@pytest.mark.parametrize("own", ["0::/app", "4:memory:/app"])
def test_pressure_is_that_of_the_machine_otherwise(tmp_path, own):
    write(tmp_path, {"proc/self/cgroup": own, "proc/pressure/memory": "\n" + PRESSURE.format(1, 2)})
    assert psi_full(tmp_path) == 2
