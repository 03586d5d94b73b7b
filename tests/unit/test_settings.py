from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from floodline import settings
from floodline.errors import ConfigError
from floodline.settings import KEYS, default, load, resolve

EXAMPLES = {
    "idle": ("45 min", 2700.0),
    "max_age": ("1 h", 3600.0),
    "max_sessions": ("250", 250),
    "max_bytes": ("64 MiB", 64 << 20),
    "store": ("sqlite:///agent.db", "sqlite:///agent.db"),
    "durability": ("park", "park"),
    "on_error": ("discard", "discard"),
    "when_full": ("grow", "grow"),
    "wait": ("0", 0.0),
    "busy_wait": ("90 s", 90.0),
    "max_hold": ("2 min", 120.0),
    "lease": ("30 s", 30.0),
    "linger": ("5", 5.0),
    "tombstone": ("10 min", 600.0),
    "retain": ("30 d", 2592000.0),
    "sweep_every": ("1.5 s", 1.5),
    "probe": ("dormant", "dormant"),
}


def write(directory: Path, name: str, text: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text(text, encoding="utf-8")
    return file


def refused(start: Path, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(start, environ or {})
    return str(caught.value)


def test_without_a_file_and_variables_there_is_nothing(tmp_path):
    assert load(tmp_path, {}).values == {}
    assert load(tmp_path, {"HOME": "/root", "IDLE": "3"}).file is None


@pytest.mark.parametrize("name", KEYS)
def test_every_setting_can_be_given_in_the_file_and_in_the_environment(tmp_path, name):
    text, value = EXAMPLES[name]
    file = write(tmp_path, "floodline.toml", f'{name} = "{text}"\n')
    assert load(tmp_path, {}) == settings.Settings({name: value}, file)
    assert load(tmp_path / "..", {f"FLOODLINE_{name.upper()}": text}).values == {name: value}


def test_numbers_need_no_quotes_in_toml(tmp_path):
    write(
        tmp_path, "floodline.toml", "idle = 90\nmax_sessions = 5\nmax_bytes = 4096\nlinger = 0.5\n"
    )
    assert load(tmp_path, {}).values == {
        "idle": 90,
        "max_sessions": 5,
        "max_bytes": 4096,
        "linger": 0.5,
    }


def test_pyproject_has_the_settings_in_its_tool_table(tmp_path):
    file = write(
        tmp_path, "pyproject.toml", '[tool.floodline]\nidle = "1 min"\n[tool.other]\nx = 1\n'
    )
    assert load(tmp_path, {}) == settings.Settings({"idle": 60}, file)


def test_floodline_toml_wins_over_pyproject_of_the_same_directory(tmp_path):
    write(tmp_path, "pyproject.toml", "[tool.floodline]\nidle = 1\nlinger = 1\n")
    write(tmp_path, "floodline.toml", "idle = 2\n")
    assert load(tmp_path, {}).values == {"idle": 2}


def test_the_nearest_directory_wins_and_the_search_stops_there(tmp_path):
    write(tmp_path, "floodline.toml", "idle = 1\nlinger = 1\n")
    write(tmp_path / "a", "pyproject.toml", "[tool.floodline]\nidle = 2\n")
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert load(deep, {}).values == {"idle": 2}


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'\n", "[tool.other]\n", "tool = 3\n"])
def test_a_pyproject_that_does_not_speak_of_floodline_is_passed_over(tmp_path, text):
    write(tmp_path, "floodline.toml", "idle = 1\n")
    write(tmp_path / "a", "pyproject.toml", text)
    assert load(tmp_path / "a", {}).values == {"idle": 1}


def test_the_environment_wins_over_the_file_name_by_name(tmp_path):
    write(tmp_path, "floodline.toml", "idle = 1\nlinger = 1\n")
    assert load(tmp_path, {"FLOODLINE_IDLE": "2 min"}).values == {"idle": 120, "linger": 1}


@pytest.mark.parametrize("word", ["none", "None", ""])
def test_none_in_the_environment_takes_a_limit_away(tmp_path, word):
    write(tmp_path, "floodline.toml", "max_bytes = 100\n")
    assert load(tmp_path, {"FLOODLINE_MAX_BYTES": word}).values == {"max_bytes": None}


def test_none_in_toml_takes_a_limit_away(tmp_path):
    write(tmp_path, "floodline.toml", 'idle = "none"\nmax_sessions = "None"\nstore = "none"\n')
    assert load(tmp_path, {}).values == {"idle": None, "max_sessions": None, "store": None}


def test_an_unknown_key_names_the_file_and_the_nearest_setting(tmp_path):
    file = write(tmp_path, "floodline.toml", "max_session = 3\n")
    assert refused(tmp_path) == f"{file}: unknown setting max_session; did you mean max_sessions?"


def test_an_unknown_table_is_an_unknown_key(tmp_path):
    file = write(tmp_path, "pyproject.toml", "[tool.floodline.zzz]\nx = 1\n")
    assert refused(tmp_path).startswith(
        f"{file}: unknown setting zzz; choose one of idle, max_age,"
    )


def test_an_unknown_variable_names_the_nearest_one(tmp_path):
    message = refused(tmp_path, {"FLOODLINE_IDEL": "3"})
    assert message == "unknown setting FLOODLINE_IDEL; did you mean FLOODLINE_IDLE?"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('idle = "soon"', "idle='soon' cannot be read; give seconds"),
        ("idle = 0", "idle=0 must be more than 0 s"),
        ('idle = ""', "idle='' cannot be read"),
        ("idle = [1]", "idle=[1] cannot be read"),
        ("idle = true", "idle=True cannot be read"),
        ("max_sessions = 0", "max_sessions=0 is below 1"),
        ("max_sessions = 1.5", "max_sessions=1.5 must be a whole number"),
        ('max_sessions = "many"', "max_sessions='many' must be a whole number"),
        ("max_bytes = -1", "max_bytes=-1 is below 1 byte"),
        ("store = 3", "store=3 is not a store; give a URL"),
        ('store = ""', "store='' is not a store"),
        ('durability = "always"', "durability='always' is unknown; choose one of 'use', 'park'"),
        ('when_full = "none"', "when_full=None is unknown; choose one of 'wait', 'reject', 'grow'"),
        ('lease = "none"', "lease=None cannot be read"),
        ("wait = -1", "wait=-1 must be 0 s or more"),
    ],
)
def test_a_bad_value_in_the_file_is_named_with_what_is_expected(tmp_path, text, says):
    file = write(tmp_path, "floodline.toml", text)
    assert refused(tmp_path).startswith(f"{file}: {says}")


def test_a_bad_value_in_the_environment_names_its_variable(tmp_path):
    message = refused(tmp_path, {"FLOODLINE_MAX_SESSIONS": "lots"})
    assert message.startswith("FLOODLINE_MAX_SESSIONS='lots' must be a whole number")


@pytest.mark.parametrize("name", ["floodline.toml", "pyproject.toml"])
def test_invalid_toml_names_the_file_and_the_line(tmp_path, name):
    file = write(tmp_path, name, "x = 1\nidle = = 3\n")
    message = refused(tmp_path)
    assert message.startswith(f"{file} cannot be read: ")
    assert "line 2" in message


def test_a_file_that_is_not_text_is_named(tmp_path):
    (tmp_path / "floodline.toml").write_bytes(b"\xff\xfe\x00")
    assert str(tmp_path / "floodline.toml") in refused(tmp_path)


def test_tool_floodline_must_be_a_table(tmp_path):
    write(tmp_path, "pyproject.toml", "[tool]\nfloodline = 3\n")
    assert "tool.floodline=3 must be a table" in refused(tmp_path)


def test_a_directory_that_is_gone_has_no_settings(tmp_path):
    assert load(tmp_path / "gone", {"FLOODLINE_IDLE": "1"}).values == {"idle": 1}


def make(*, idle: object = default("30 min"), linger: object = default(0)) -> dict[str, object]:
    return resolve(idle=idle, linger=linger)


def test_arguments_win_over_settings_and_settings_over_defaults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert make() == {"idle": "30 min", "linger": 0}
    write(tmp_path, "floodline.toml", "idle = 60\n")
    assert make() == {"idle": 60, "linger": 0}
    monkeypatch.setenv("FLOODLINE_IDLE", "2 min")
    assert make(linger=7) == {"idle": 120, "linger": 7}
    assert make(idle=None) == {"idle": None, "linger": 0}
    assert make(idle="30 min") == {"idle": "30 min", "linger": 0}


def test_a_setting_of_none_replaces_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOODLINE_IDLE", "none")
    assert make() == {"idle": None, "linger": 0}


def test_when_every_argument_is_given_no_file_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "floodline.toml", "not toml at all")
    assert make(idle=1, linger=2) == {"idle": 1, "linger": 2}
    with pytest.raises(ConfigError):
        make(idle=1)


def test_a_marked_default_looks_and_compares_like_its_value():
    shown = inspect.signature(make).parameters
    assert shown["idle"].default == "30 min"
    assert shown["idle"].default != "31 min"
    assert default(0) == default(0)
    assert "idle: 'object' = '30 min'" in str(inspect.signature(make))
    assert hash(default("30 min")) == hash("30 min")


def test_every_setting_is_documented_with_its_variable():
    page = Path(__file__).parents[2].joinpath("docs", "settings.md").read_text(encoding="utf-8")
    missing = [name for name in KEYS if f"| `{name}` | `FLOODLINE_{name.upper()}` |" not in page]
    assert missing == []
