"""Items, limits, tenants and figures of the service, each on its own."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from floodline._service import Limits, Tenants, _refusals, _statuses
from floodline._service._app import create_app, make_board
from floodline._service._items import accept
from floodline._service._items.schema import by_type
from floodline._service._limits import OPTIONS
from floodline._service._metrics import FAMILIES, Board
from floodline._service._refusals import Refusal, refusal_for
from floodline.errors import ConfigError, RowConflict, TooLarge
from floodline.web._asgi import http_errors


def refused(item):
    with pytest.raises(Refusal) as caught:
        accept.accept(item, "items[0]")
    assert caught.value.status == 400
    return caught.value.param


def test_what_a_client_may_leave_out_is_completed():
    said = accept.accept({"role": "assistant", "content": "hi"}).item
    assert said["content"] == [{"type": "output_text", "text": "hi", "annotations": []}]
    assert (said["type"], said["status"]) == ("message", "completed")
    assert said["id"].startswith("msg_")
    image = {"type": "input_image", "image_url": "https://x"}
    shown = accept.accept({"role": "user", "content": [image, {"type": "computer_screenshot"}]})
    assert [part["detail"] for part in shown.item["content"]] == ["auto", "auto"]
    output = {"type": "function_call_output", "call_id": "c", "output": [image], "status": None}
    done = accept.accept(output).item
    assert (done["status"], done["output"][0]["detail"]) == ("completed", "auto")
    screenshot = {"type": "computer_screenshot", "image_url": "https://x"}
    seen = accept.accept({"type": "computer_call_output", "call_id": "c", "output": screenshot})
    assert seen.item["output"] == screenshot
    assert "detail" not in image
    assert accept.accept({"type": "mcp_list_tools", "server_label": "x"}).item["tools"] == []


def test_what_a_client_adds_is_kept():
    item = {"role": "user", "content": "hi", "id": "mine", "extra": {"deep": [1]}}
    kept = accept.accept(item)
    assert kept.item["extra"] == {"deep": [1]}
    assert (kept.id, kept.named) == ("mine", True)


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({}, "items[0].type"),
        ({"type": "unheard_of"}, "items[0].type"),
        ({"type": ["message"]}, "items[0].type"),
        ({"type": "item_reference", "id": "x"}, "items[0].type"),
        ({"role": "nobody", "content": "x"}, "items[0].role"),
        ({"role": "user", "content": "x", "id": "a/b"}, "items[0].id"),
        ({"role": "user", "content": "x", "id": 7}, "items[0].id"),
        ({"role": "user", "content": "x", "status": "odd"}, "items[0].status"),
        ({"role": "user"}, "items[0].content"),
        ({"role": "user", "content": ["x"]}, "items[0].content[0]"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "items[0].content[0].text"),
        ({"role": "user", "content": [{"type": "odd"}]}, "items[0].content[0].type"),
        ({"type": "function_call", "call_id": "c", "name": "f"}, "items[0].arguments"),
        (
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": {}},
            "items[0].arguments",
        ),
        (
            {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": [],
             "env": {"A": 1}}},
            "items[0].action.env.A",
        ),
        ("text", "items[0]"),
    ],
)  # fmt: skip  # a table
def test_an_item_that_clients_would_reject_is_refused_with_its_place(item, param):
    assert refused(item) == param


def test_every_type_of_the_api_is_known():
    assert {"message", "function_call", "reasoning", "mcp_call", "compaction"} <= set(by_type())
    assert len(by_type()) == 29


def test_limits_come_from_flags_variables_files_and_the_settings_of_sessions(tmp_path):
    (tmp_path / "floodline.toml").write_text(
        'idle = "5 min"\n[serve]\nmax_history = 7\nmax_items = 70\nretain = "none"\n'
    )
    environ = {"FLOODLINE_SERVE_MAX_ITEMS": "80", "FLOODLINE_MAX_SESSIONS": "3"}
    limits = Limits.read({"max_body": "1 KiB", "ttl": None}, environ=environ, start=tmp_path)
    assert (limits.max_body, limits.max_items, limits.max_history) == (1024, 80, 7)
    assert (limits.ttl, limits.max_sessions, limits.retain) == (300.0, 3, None)
    assert Limits.read(environ={}, start=tmp_path / "..") == Limits()


@pytest.mark.parametrize(
    ("environ", "toml", "why"),
    [
        ({"FLOODLINE_SERVE_TLL": "5"}, "", "FLOODLINE_SERVE_TTL"),
        ({}, "[serve]\nmax_histroy = 1", "max_history"),
        ({"FLOODLINE_SERVE_MAX_HISTORY": "few"}, "", "MAX_HISTORY"),
        ({"FLOODLINE_SERVE_TTL": "0"}, "", "TTL"),
        ({"FLOODLINE_SERVE_STORE": ""}, "", "STORE"),
        ({}, "[serve]\nxyzzy = 1", "choose one of"),
    ],
)
def test_a_setting_that_cannot_be_right_is_named(environ, toml, why, tmp_path):
    (tmp_path / "floodline.toml").write_text(toml)
    with pytest.raises(ConfigError, match=why):
        Limits.read(environ=environ, start=tmp_path)


def test_the_defaults_of_the_old_worker_are_kept():
    old = {option.before: option.default for option in OPTIONS if option.before}
    assert old == {
        "SESSION_TTL_MINUTES": "60 min",
        "MAX_CONVERSATION_HISTORY": 50,
        "MAX_ACTIVE_SESSIONS": 100,
    }


def test_the_variables_of_the_old_worker_are_read(tmp_path):
    (tmp_path / "floodline.toml").write_text("[serve]\nmax_history = 7\n")
    old = {
        "SESSION_TTL_MINUTES": "1.5",
        "MAX_CONVERSATION_HISTORY": "9",
        "MAX_ACTIVE_SESSIONS": "4",
        "FLOODLINE_SERVE_MAX_SESSIONS": "5",
    }
    limits = Limits.read(environ=old, start=tmp_path)
    assert (limits.ttl, limits.max_history, limits.max_sessions) == (90.0, 9, 5)


def test_tokens_come_from_a_file_and_from_the_environment(tmp_path):
    file = tmp_path / "tokens"
    file.write_text("# ours\nacme: one-long-token\n\nacme:another-token\n")
    environ = {
        "FLOODLINE_SERVE_TOKENS": "b:token-of-b",
        "FLOODLINE_SERVE_ADMIN_TOKEN": "token-of-admin",
    }
    tenants = Tenants.read(file, environ)
    assert tenants.names == ("acme", "b")
    for token, name in [
        ("one-long-token", "acme"),
        ("another-token", "acme"),
        ("token-of-b", "b"),
        ("token-of-admin", "admin"),
        ("", None),
    ]:
        assert tenants.tenant_of(f"Bearer {token}") == name
    assert tenants.is_admin("admin")
    assert not tenants.is_admin("acme")


@pytest.mark.parametrize(
    "lines", ["acme", "acme:short", "a b:long-enough", "a:same-token\nb:same-token", "# none"]
)
def test_a_bad_list_of_tokens_is_refused_without_printing_one(lines, tmp_path):
    file = tmp_path / "tokens"
    file.write_text(lines)
    with pytest.raises(ConfigError) as caught:
        Tenants.read(file, {})
    assert "same-token" not in str(caught.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        Tenants.read(tmp_path / "missing", {})


def test_the_number_of_tenants_is_bounded():
    with pytest.raises(ConfigError, match="at most 1000"):
        Tenants.of([(f"t{n}", f"long-token-{n}") for n in range(1001)])


def test_a_scrape_shows_the_sum_of_all_workers():
    board = make_board(Tenants(), workers=2)
    for number in range(2):
        board.take_row(number)
        board.set("workers", 1)
        board.set("store_up", number)
        board.answered("items", 200, 0.003)
        board.answered("items", 418, 99.0)
    text = board.text()
    assert 'floodline_serve_requests_total{route="items",status="200"} 2\n' in text
    assert 'floodline_serve_requests_total{route="items",status="other"} 2\n' in text
    assert 'floodline_serve_request_seconds_bucket{route="items",le="0.005"} 2\n' in text
    assert 'floodline_serve_request_seconds_count{route="items"} 4\n' in text
    assert "floodline_serve_workers 2\n" in text
    assert "floodline_serve_store_up 0\n" in text


def test_a_worker_that_replaces_another_counts_on_but_has_nothing_in_memory():
    board = Board(["x"], [""])
    board.set("sessions_live", 5, "")
    board.count_up_to("session_saves_total", "", 3)
    board.take_row(0)
    board.count_up_to("session_saves_total", "", 2)
    board.count_up_to("session_saves_total", "", 2)
    assert board.value("sessions_live", "") == 0
    assert board.value("session_saves_total", "") == 5


def test_the_names_of_the_metrics_are_unique():
    names = [family.full_name for family in FAMILIES]
    assert len(names) == len(set(names))


def test_errors_of_ours_become_answers_and_others_do_not():
    for error, status in [(TooLarge("x"), 413), (RowConflict("x"), 409), (ConfigError("x"), 400)]:
        found = refusal_for(error)
        assert found is not None
        assert found.status == status
    assert refusal_for(KeyError("x")) is None


def test_the_limits_and_the_app_have_the_defaults_of_the_options(tmp_path):
    read = Limits.read(environ={}, start=tmp_path)
    assert read == Limits()
    app = inspect.signature(create_app).parameters
    for name in ("max_items", "max_body"):
        assert app[name].default == next(one.default for one in OPTIONS if one.name == name)


def test_every_option_is_in_the_docs():
    page = (Path(__file__).parents[3] / "docs" / "serve.md").read_text(encoding="utf-8")
    for option in OPTIONS:
        default = "none" if option.default is None else f"`{option.default}`"
        before = f"`{option.before}`" if option.before else ""
        row = (f"`{option.flag}`", default, option.takes, option.means)
        assert f"| {' | '.join(row)} | {before}".rstrip() in page
        # as the sentence above the table says
        assert option.flag == "--" + option.name.replace("_", "-")
        assert option.variable == f"FLOODLINE_SERVE_{option.name.upper()}"


@pytest.mark.parametrize("sentences", [_refusals._SENTENCES, http_errors._SENTENCES])
def test_every_error_that_is_answered_has_a_status_and_comes_before_its_bases(sentences):
    kinds = list(sentences)
    assert set(kinds) <= set(_statuses._STATUSES)
    for position, kind in enumerate(kinds):
        assert not issubclass(kind, tuple(kinds[:position]))
