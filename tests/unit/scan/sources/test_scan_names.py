"""A finding keeps its fingerprint, and its places are lines that exist."""

from __future__ import annotations

import re

import pytest

from floodline.scan import Scan

LEAK = """
from .state import Registry

registry = Registry()


async def handle(request):
    registry.seen[request.id] = request
"""
STATE = """
class Registry:
    def __init__(self):
        self.seen = {}
"""


def clone(folder, *marks):
    (folder / "sub").mkdir(parents=True)
    for mark in marks:
        (folder / mark).touch()
    for name in ("__init__.py", "sub/__init__.py"):
        (folder / name).write_text("from .state import Registry\n")
    for name in ("app.py", "sub/app.py"):
        (folder / name).write_text(LEAK)
    for name in ("state.py", "sub/state.py"):
        (folder / name).write_text(STATE)


def prints(*paths) -> dict[str, str]:
    findings = Scan(paths).report().findings
    return {finding.symbol: finding.fingerprint for finding in findings}


@pytest.mark.parametrize("mark", [".git", "pyproject.toml"])
def test_two_clones_of_a_root_with_an_init_have_the_same_fingerprints(tmp_path, monkeypatch, mark):
    clone(tmp_path / "one", mark)
    clone(tmp_path / "two", mark)
    monkeypatch.chdir(tmp_path)
    outside = prints("one")
    assert outside.keys() == {"state.Registry.seen", "sub.state.Registry.seen"}
    assert outside == prints("two") == prints(tmp_path / "two")


def test_the_way_a_path_is_given_changes_no_fingerprint(tmp_path, monkeypatch):
    clone(tmp_path / "one", ".git")
    monkeypatch.chdir(tmp_path)
    outside = prints("one")
    monkeypatch.chdir(tmp_path / "one" / "sub")
    assert outside == prints("..") == prints("../../one")
    monkeypatch.chdir(tmp_path / "one")
    assert outside == prints(".")
    inner = prints("sub")
    assert inner.items() <= outside.items()
    assert inner == prints("sub/app.py", "sub/state.py")


def test_a_package_has_the_same_fingerprints_from_inside(tmp_path, monkeypatch):
    clone(tmp_path / "shop")
    outside = prints(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    assert outside.keys() == {"shop.state.Registry.seen", "shop.sub.state.Registry.seen"}
    assert outside == prints(".")


def test_an_instance_that_a_local_name_passes_on_has_the_line_where_it_goes(tmp_path):
    (tmp_path / "app.py").write_text(
        "class Hub:\n    def __init__(self):\n        self.seen = {}\n\n"
        "    async def handle(self, request):\n        self.seen[request.id] = request\n\n\n"
        "hub = None\n\n\ndef start():\n    global hub\n    made = Hub()\n    hub = made\n"
    )
    (finding,) = Scan([tmp_path]).report().findings
    places = [proof.at for proof in finding.proofs if proof.at]
    assert [place for place in places if place.endswith("app.py:15")]
    assert all(re.search(r":[1-9]\d*$", place) for place in places)


def test_a_project_has_the_same_fingerprints_wherever_the_scan_begins(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").touch()
    clone(tmp_path / "src" / "shop")
    (tmp_path / "tools" / "watch").mkdir(parents=True)
    (tmp_path / "tools" / "watch" / "main.py").write_text(
        "seen = {}\n\nasync def handle(request):\n    seen[request.id] = request\n"
    )
    monkeypatch.chdir(tmp_path)
    everything = prints(".")
    assert everything.keys() == {
        "shop.state.Registry.seen", "shop.sub.state.Registry.seen", "tools.watch.main.seen",
    }  # fmt: skip
    assert everything == prints("src", "tools") == prints("src/shop", "tools/watch/main.py")


def test_packages_of_the_same_name_are_told_apart_and_mean_their_own(tmp_path):
    for service in ("one", "two"):
        clone(tmp_path / service / "app")
    assert prints(tmp_path).keys() == {
        f"{service}.app.{name}.Registry.seen"
        for service in ("one", "two")
        for name in ("state", "sub.state")
    }


@pytest.mark.parametrize(("folder", "found"), [("src", "shop.state.Registry.seen"), ("lib", None)])
def test_an_import_may_start_with_the_folder_above_a_package(tmp_path, folder, found):
    clone(tmp_path / folder / "shop")
    (tmp_path / folder / "shop" / "sub" / "app.py").unlink()
    (tmp_path / folder / "shop" / "app.py").write_text(LEAK.replace(".state", "src.shop.state"))
    known = [s for s in prints(tmp_path) if s == "shop.state.Registry.seen"]
    assert known == ([found] if found else [])


@pytest.mark.parametrize("folder", ["tests", "testing", "test_nightly", "unit_tests", ".hidden"])
def test_folders_of_tests_are_not_read(tmp_path, folder):
    for name in (folder, "latest", "protests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "app.py").write_text("x = 1\n")
    files = Scan([tmp_path]).paths
    assert [path.rpartition("/")[0].rpartition("/")[2] for path in files] == ["latest", "protests"]
