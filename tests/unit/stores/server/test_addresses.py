"""Addresses of servers, and what is printed of them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from floodline.errors import ConfigError
from floodline.stores import PostgresStore, RedisStore, open_store
from floodline.stores._server.addresses import conceal, mask, need


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://:geheim@h/0", "redis://:***@h/0"),
        ("rediss://me:ge%2Fheim@h:6380/2?x=1", "rediss://me:***@h:6380/2?x=1"),
        ("redis://me:ge/he@im@h/0", "redis://me:***@h/0"),
        (
            "redis://h/0?username=me&password=geheim&db=1",
            "redis://h/0?username=me&password=***&db=1",
        ),
        (
            "postgresql://me@h1:1,h2:2/db?sslmode=require",
            "postgresql://me@h1:1,h2:2/db?sslmode=require",
        ),
        (
            "postgres://me:geheim@h1,h2/db?sslpassword=geheim",
            "postgres://me:***@h1,h2/db?sslpassword=***",
        ),
        ("no url", "no url"),
    ],
)
def test_passwords_are_hidden_and_the_rest_is_shown(url: str, shown: str) -> None:
    assert mask(url) == shown


def test_what_a_driver_says_has_no_password_either() -> None:
    url = "postgresql://me:ge%20heim@h/db"
    said = conceal(f"{url}: 'ge heim' is wrong, and so is ge%20heim", url)
    assert said == "postgresql://me:***@h/db: '***' is wrong, and so is ***"


@pytest.mark.parametrize("store", [RedisStore, PostgresStore])
@pytest.mark.parametrize("url", ["mysql://me:geheim@h/0", "", None, "redis:/h", "postgresql"])
def test_another_address_is_an_error_without_its_password(store: Any, url: Any) -> None:
    with pytest.raises(ConfigError, match="is not an address") as caught:
        store(url)
    assert "geheim" not in str(caught.value)


def test_an_unknown_scheme_is_an_error_without_its_password() -> None:
    with pytest.raises(ConfigError, match=r"mysql://me:\*\*\*@h") as caught:
        open_store("mysql://me:geheim@h/0")
    assert "redis://" in str(caught.value)


@pytest.mark.parametrize("url", ["redis://me:geheim@h:port/0", "postgresql://me:geheim@h:/?x=1"])
def test_an_address_that_the_driver_refuses_is_an_error_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match=r"\*\*\*@h") as caught:
        open_store(url)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"prefix": ""}, {"prefix": "a{b}"}, {"wait_replicas": -1}, {"connections": 0}]
)
def test_options_of_redis_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        RedisStore("redis://127.0.0.1:1/0", **options)


@pytest.mark.parametrize("options", [{"schema": 'a"b'}, {"timeout": "never"}, {"connections": 0}])
def test_options_of_postgres_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        PostgresStore("postgresql://127.0.0.1:1/db", **options)


def test_a_missing_driver_is_an_error_that_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'floodline\[redis\]'"):
        need("no_such_driver", "redis", "redis://h")


def test_nobody_imports_a_driver_who_does_not_need_it() -> None:
    program = "import sys, floodline.stores; print({'redis', 'psycopg'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "set()"
