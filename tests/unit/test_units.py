from __future__ import annotations

from datetime import timedelta

import pytest

from floodline._units import (
    format_duration,
    format_number,
    format_size,
    parse_choice,
    parse_count,
    parse_duration,
    parse_size,
)
from floodline.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (1, 1),
        (1.9, 1),
        ("512", 512),
        ("64 MiB", 64 << 20),
        ("64MiB", 64 << 20),
        (" 2 gib ", 2 << 30),
        ("1.5 KiB", 1536),
        (".5 KiB", 512),
        ("10 kB", 10_000),
        ("1_000 bytes", 1000),
        ("3 t", 3 << 40),
    ],
)
def test_sizes_are_read_as_people_write_them(value, size):
    assert parse_size(value, "max_bytes") == size


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0.25, 0.25),
        ("30 min", 1800),
        ("5m", 300),
        ("250 ms", 0.25),
        ("1.5 h", 5400),
        ("2 days", 172_800),
        ("1 week", 604_800),
        ("45", 45),
        (timedelta(minutes=2), 120),
    ],
)
def test_times_are_read_as_people_write_them(value, seconds):
    assert parse_duration(value, "idle") == seconds


@pytest.mark.parametrize(
    "value",
    ["", "much", "3 parsecs", "-1 s", "1e3", "80%", None, True, [], float("nan"), float("inf")],
)
def test_what_cannot_be_read_names_the_setting_the_value_and_the_form(value):
    with pytest.raises(ConfigError, match=r"^idle=.* cannot be read; give seconds, a timedelta or"):
        parse_duration(value, "idle")
    with pytest.raises(ConfigError, match=r"^max_bytes=.* cannot be read; give a number of bytes"):
        parse_size("80%" if value == "1e3" else value, "max_bytes")


@pytest.mark.parametrize("value", [0, 0.5, -3, "0 KiB"])
def test_a_size_is_at_least_one_byte(value):
    with pytest.raises(ConfigError, match="is below 1 byte"):
        parse_size(value, "max_bytes")


def test_a_time_is_above_zero_unless_zero_is_allowed():
    assert parse_duration(0, "linger", zero=True) == 0
    with pytest.raises(ConfigError, match="idle=0 must be more than 0 s"):
        parse_duration(0, "idle")
    with pytest.raises(ConfigError, match="must be 0 s or more"):
        parse_duration(timedelta(seconds=-1), "linger", zero=True)


def test_a_count_is_a_whole_number_of_at_least_one():
    assert parse_count(1, "max_items") == 1
    with pytest.raises(ConfigError, match="max_items=0 is below 1"):
        parse_count(0, "max_items")
    for value in (True, 1.0, "1", None):
        with pytest.raises(ConfigError, match="must be a whole number"):
            parse_count(value, "max_items")
    with pytest.raises(ConfigError, match=r"max_items=None must be a whole number of at least 1$"):
        parse_count(None, "max_items")


def test_a_choice_is_one_of_the_known():
    assert parse_choice("lru", "order", ("lru", "fifo")) == "lru"
    with pytest.raises(ConfigError, match="order='mru' is unknown; choose one of 'lru', 'fifo'"):
        parse_choice("mru", "order", ("lru", "fifo"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.25, "0.25 s"),
        (45, "45 s"),
        (720, "12 min"),
        (90, "1 min 30 s"),
        (59.7, "1 min"),
        (12600, "3 h 30 min"),
        (172800, "2 d"),
        (3599.9, "1 h"),
        (90061, "1 d 1 h"),
    ],
)
def test_times_are_written_briefly(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (512, "512 B"),
        (1536, "1.5 KiB"),
        (64 << 20, "64 MiB"),
        (1020 << 20, "1020 MiB"),
        (3 << 40, "3 TiB"),
    ],
)
def test_sizes_are_written_briefly(size, text):
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.25, "0.25"), (12.49, "12.5"), (999.4, "999"), (1209.7, "1,210"), (2e6, "2,000,000")],
)
def test_numbers_are_written_without_an_exponent(number, text):
    assert format_number(number) == text
