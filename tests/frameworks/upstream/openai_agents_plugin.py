"""`FloodlineSession` in the place of `SQLiteSession` in the SDK's own tests of sessions.

`nox -s upstream` runs them from the sdist with this plugin.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import pytest

from floodline.adapters.openai_agents import FloodlineSession, agent_sessions

CONNECTIONS = "is about the connections and threads of SQLiteSession"
ROWS = "writes into the tables of SQLiteSession"
ORPHANS = "expects get_items to return a result without its call, which FloodlineSession never does"
NOT_OURS = {
    "test_session_limit_drops_unmatched_history_function_call_output": ORPHANS,
    "test_await_mutation_cancellation_hides_later_failure_without_loop_error": CONNECTIONS,
    "test_sqlite_session_close_closes_worker_thread_connections": CONNECTIONS,
    "test_sqlite_session_reaps_connections_from_exited_worker_threads": CONNECTIONS,
    "test_sqlite_session_closes_retired_connections_before_the_next_allocation": CONNECTIONS,
    "test_sqlite_session_keeps_connections_of_live_worker_threads": CONNECTIONS,
    "test_sqlite_session_closed_rejects_empty_add_items": CONNECTIONS,
    "test_sqlite_session_file_lock_is_shared_across_instances": CONNECTIONS,
    "test_sqlite_session_failed_add_items_releases_write_lock": CONNECTIONS,
    "test_sqlite_session_failed_clear_session_rolls_back": CONNECTIONS,
    "test_sqlite_session_failed_pop_item_releases_write_lock": CONNECTIONS,
    "test_sqlite_session_rollback_failure_evicts_connection": CONNECTIONS,
    "test_sqlite_session_close_retries_quarantined_connection": CONNECTIONS,
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome": CONNECTIONS,
    "test_sqlite_session_pop_item_skips_corrupt_most_recent": ROWS,
    "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": ROWS,
    "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": ROWS,
    "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": ROWS,
}


class Session(FloodlineSession):
    """Takes the arguments of `SQLiteSession`, and closes what it opened."""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **options: Any) -> None:
        url = None if str(db_path) == ":memory:" else f"sqlite:///{db_path}"
        super().__init__(session_id, agent_sessions(url), **options)

    def close(self) -> None:
        self._sessions.shutdown()


agents.SQLiteSession = Session  # type: ignore[assignment, misc] # before the tests import it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if why := NOT_OURS.get(item.name.partition("[")[0]):
            item.add_marker(pytest.mark.skip(reason=why))
