"""Bits turned on every page of a store: each session comes back as it was, or is refused."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from store_files import damage, flips, look_at_all, write_store


@pytest.mark.parametrize(
    ("rows", "per_page", "seed"),
    [
        pytest.param(60, 2, 1, id="short"),
        *(
            pytest.param(300, 20, seed, id=f"long-{seed}", marks=pytest.mark.long)
            for seed in range(5)
        ),
    ],
)
def test_no_session_is_missing_wrong_or_there_twice(
    tmp_path: Path, rows: int, per_page: int, seed: int
) -> None:
    rng = random.Random(seed)
    whole, spoiled = tmp_path / "whole.db", tmp_path / "spoiled.db"
    contents = write_store(whole, rows, rng)
    told: Counter[str] = Counter()
    for at, bits in flips(whole.stat().st_size, per_page, rng):
        damage(whole, spoiled, at, bits)
        seen = look_at_all(spoiled, contents, rng)
        assert not seen.keys() & {"MISSING", "WRONG"}, (at, bits, seen)
        told += seen
    assert told["right"] > 10 * rows
    assert told["DamagedRecord"] > 0
    assert told["StoreCorrupt"] > 0


@pytest.mark.parametrize("step", [31, pytest.param(1, marks=pytest.mark.long)])
def test_a_damaged_first_page_opens_right_or_is_refused(tmp_path: Path, step: int) -> None:
    rng = random.Random(step)
    whole, spoiled = tmp_path / "whole.db", tmp_path / "spoiled.db"
    contents = write_store(whole, 10, rng)
    refused = 0
    for at in range(0, 4096, step):
        damage(whole, spoiled, at, bytes([rng.choice((0x01, 0x80, 0xFF))]))
        seen = look_at_all(spoiled, contents, rng)
        assert not seen.keys() & {"MISSING", "WRONG"}, (at, seen)
        refused += "right" not in seen
    assert refused > 10
