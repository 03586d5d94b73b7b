"""The FastAPI example under `floodline run`, with clients that leave: `nox -s streams`, shorter."""

from __future__ import annotations

from pathlib import Path

from streaming_clients import Stage


def test_clients_that_leave_hold_nothing_and_lose_nothing(tmp_path: Path) -> None:
    stage = Stage(tmp_path, clients=20)
    try:
        stage.talk(turns=3)
        assert stage.left_held() == 0
        said = stage.end()
    finally:
        stage.run.stop()
    assert stage.lost() == []
    assert all(len(one.asked) == 3 for one in stage.clients)
    assert [one.complete for one in stage.clients[1].asked] == [False] * 3
    assert stage.verdict() != "growing", said
