"""FLD3xx: caches that keep what they were called with, and caches that do not."""

from __future__ import annotations

import pytest

FOUND: dict[str, tuple[str, str | dict[str, str]]] = {
    "a cache for tokens": (
        "FLD302",
        """
        import functools

        @functools.lru_cache(maxsize=None)
        def claims(token): ...

        @app.get("/claims")
        def show(token):
            return claims(token)
        """,
    ),
    "a cache of a method": (
        "FLD301",
        """
        from functools import lru_cache

        class Page:
            @lru_cache(maxsize=None)
            def words(self, language):
                return [language]
        """,
    ),
    "a cache by objects that equal only themselves": (
        "FLD303",
        """
        from functools import cache

        class Connection: ...

        @cache
        def tables(connection: Connection, schema: str):
            return [schema]
        """,
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_a_rule_finds(case, found):
    rule, code = FOUND[case]
    files = code if isinstance(code, dict) else {"app": code}
    assert [finding.rule for finding in found(**files)] == [rule]


CLEAN = {
    "a cache for a fixed set": """
        from functools import cache

        @cache
        def parser(kind): ...
    """,
    "a cache that somebody empties": """
        from functools import cache

        class Connection: ...

        @cache
        def tables(connection: Connection):
            return []

        def reconnect():
            tables.cache_clear()
    """,
    "a cache of the methods of an enum": """
        from enum import Enum
        from functools import cache

        class Colour(Enum):
            RED = 1

            @cache
            def code(self, theme: str):
                return theme
    """,
}


@pytest.mark.parametrize("case", CLEAN)
def test_no_rule_speaks_of(case, found):
    assert [(finding.rule, finding.symbol) for finding in found(app=CLEAN[case])] == []
