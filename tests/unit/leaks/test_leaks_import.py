from __future__ import annotations

import os
import subprocess
import sys

import pytest


def printed(code: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_the_package_alone_loads_no_engine():
    code = (
        "import sys, floodline.leaks as leaks\n"
        "print('floodline.leaks._live' in sys.modules)\n"
        "print(leaks.Live.__name__, 'floodline.leaks._live' in sys.modules)\n"
    )
    assert printed(code) == ["False", "Live", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_counts_before_somebody_asks_for_a_live_watch():
    code = (
        "import os, floodline.leaks\n"
        "if os.fork() == 0:\n"
        "    from floodline.leaks._live.watch import FORK\n"
        "    print(FORK.generation, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    assert printed(code) == ["1"]
