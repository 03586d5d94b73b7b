"""A process under a growing load, in little memory: with shedding it lives and loses nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from floodline import Sessions

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a child")

MIB = 1 << 20
LINE = 128 * MIB  # what the process must not pass
KILLED_AT = 176 * MIB  # where the kernel refuses more
BUDGET = 96 * MIB
SESSIONS, SIZE = 700, 256 * 1024

PRELUDE = """
    import asyncio, hashlib, os, resource, sys, time
    from floodline import AsyncSessions, MemoryBudget, Sessions
    from floodline.memory import rss

    file, budget, killed_at, sessions, size = sys.argv[1], *map(int, sys.argv[2:])
    resource.setrlimit(resource.RLIMIT_DATA, (killed_at, killed_at))
    options = dict(store="sqlite:///" + file, max_sessions=None, idle="1 h")
    if budget:
        options["pressure"] = MemoryBudget(budget, every=0.005, cooldown=0)

    def text(n):
        return hashlib.sha256(b"%d" % n).hexdigest() * (size // 64)

    def acknowledge(n):
        os.write(1, b"%d %d\\n" % (n, rss()))

    def looks(n):
        # now and then the load waits until the budget has looked again: so its size cannot depend
        # on when a busy machine lets the other thread run
        before = options["pressure"].stats().checks if budget and n % 10 == 0 else None
        while before is not None and options["pressure"].stats().checks == before:
            yield 0.001
"""

THREADS = """
    with Sessions(dict, **options) as chats:
        for n in range(sessions):
            with chats.use(f"s{n}") as state:
                state["text"] = text(n)
            acknowledge(n)
            for pause in looks(n):
                time.sleep(pause)
        if budget:
            assert options["pressure"].stats().shed > 0
"""

TASKS = """
    async def main():
        async with AsyncSessions(dict, **options) as chats:
            for n in range(sessions):
                async with chats.use(f"s{n}") as state:
                    state["text"] = text(n)
                acknowledge(n)
                for pause in looks(n):
                    await asyncio.sleep(pause)
            if budget:
                assert options["pressure"].stats().shed > 0

    asyncio.run(main())
"""


def run(program: str, file: os.PathLike[str], budget: int) -> tuple[int, list[int], int]:
    """Run the load; return the exit status, what was acknowledged, and the highest size."""
    source = textwrap.dedent(PRELUDE) + textwrap.dedent(program)
    arguments = [str(n) for n in (file, budget, KILLED_AT, SESSIONS, SIZE)]
    environment = {**os.environ, "MALLOC_ARENA_MAX": "2"}  # arenas are address space, not memory
    done = subprocess.run(
        [sys.executable, "-c", source, *arguments],
        capture_output=True,
        check=False,
        env=environment,
        timeout=400,
    )
    lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    if budget:
        assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.returncode, [n for n, _ in lines], max(size for _, size in lines)


def assert_all_found(file: os.PathLike[str], acknowledged: list[int]) -> None:
    import hashlib

    with Sessions(dict, store=f"sqlite:///{file}", max_sessions=10) as sessions:
        for n in acknowledged:
            with sessions.use(f"s{n}", create=False, shared=True) as state:
                assert state["text"][:64] == hashlib.sha256(b"%d" % n).hexdigest()
                assert len(state["text"]) == SIZE


@pytest.mark.parametrize("program", [THREADS, TASKS], ids=["threads", "tasks"])
def test_the_same_load_lives_with_shedding_and_passes_its_line_without(tmp_path, program):
    status, acknowledged, peak = run(program, tmp_path / "with.db", BUDGET)
    assert status == 0
    assert acknowledged == list(range(SESSIONS))
    assert peak < LINE, f"{peak / MIB:.0f} MiB"
    assert_all_found(tmp_path / "with.db", acknowledged)

    status, acknowledged, peak = run(program, tmp_path / "without.db", 0)
    assert status != 0 or peak > LINE, f"{peak / MIB:.0f} MiB"
    assert_all_found(tmp_path / "without.db", acknowledged)
