"""Strangers at the ports of a recorder: its memory stays, its probes get in, its owner sees it."""

from __future__ import annotations

import json
import random
import socket
import struct
import subprocess
import sys
import urllib.request
from contextlib import suppress

import pytest

PATIENCE = 60.0
MIB = 1 << 20
GROWTH = 24 * MIB  # what any load may cost, however long it lasts
FIRST_PID = 2**22 + 100  # above every real one

# ticks and tells its state whenever it is asked
RECORDER = """
import json, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from floodline import memory
from floodline.recorder import Recorder
from floodline.web import make_app, serve
recorder = Recorder("app.py", file=Path(sys.argv[1]))
serving = serve(make_app(recorder, token=None), "127.0.0.1", 0)
print(json.dumps([recorder.address, serving.port]), flush=True)
for _ in sys.stdin:
    recorder.tick()
    state = recorder.state()
    started = [one["pid"] for one in state["events"] if one["kind"] == "process_started"]
    told = [started, memory.rss(), recorder.unwritten]
    print(json.dumps(told), flush=True)
serving.close()
recorder.close()
"""


class Target:
    """A recorder with its dashboard, in a process of its own with few descriptors."""

    def __init__(self, file):
        self.child = subprocess.Popen(
            [sys.executable, "-c", RECORDER, str(file)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        address, self.web = json.loads(self.child.stdout.readline())
        _, port, self.token = address.split(":")
        self.intake = int(port)

    def look(self):
        """Have it tick; return the probes it has heard, its resident bytes and its trouble."""
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def end(self):
        _, errors = self.child.communicate(timeout=PATIENCE)
        return self.child.returncode, errors


class Strangers:
    """Does at random what an unfriendly user of the machine can do; keeps few sockets itself."""

    def __init__(self, target, rng):
        self._target, self._rng = target, rng
        self._open = []
        self.sent = 0

    def act(self):
        port = self._rng.choice([self._target.intake, self._target.web])
        line = socket.socket()
        line.settimeout(PATIENCE)
        self._open.append(line)
        with suppress(OSError):  # cut off: as it should be
            line.connect(("127.0.0.1", port))
            for part in self._words():
                line.sendall(part)
                self.sent += len(part)
        if self._rng.random() < 0.2:  # goes with a reset
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._open.pop().close()
        while len(self._open) > 500:
            self._open.pop(0).close()

    def _words(self):
        hello = {"kind": "hello", "token": "0" * 32, "pid": 1, "command": "x"}
        return self._rng.choice([
            [],
            [],
            [],
            [b"{"],
            [b"x" * 65536] * 32,
            [json.dumps(hello).encode() + b"\n"],
            [b"[" * 7000 + b"\n"],
            [b"GET /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n"] * 3,
            [b"GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n"],
            [b"GET / HTTP/1.1\r\nX: " + b"y" * 65536] * 4,
            [b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"]
            + [b"z" * 65536] * 8,
        ])  # fmt: skip

    def close(self):
        for line in self._open:
            line.close()


def owner_sees(target):
    url = f"http://127.0.0.1:{target.web}/api/state"
    with urllib.request.urlopen(url, timeout=PATIENCE) as page:
        return json.loads(page.read())["command"]


@pytest.mark.parametrize(
    ("acts", "seed"),
    [
        pytest.param(800, 1, id="short"),
        *(pytest.param(20_000, seed, id=f"long-{seed}", marks=pytest.mark.long) for seed in (2, 3)),
    ],
)
def test_strangers_cost_neither_memory_nor_probes_nor_ticks(tmp_path, acts, seed):
    rng = random.Random(seed)
    target = Target(tmp_path / "run.rec")
    strangers = Strangers(target, rng)
    probes = []
    owner_sees(target)
    _, before, _ = target.look()
    most = before
    try:
        for number in range(acts):
            strangers.act()
            if number % 50 == 0:
                pid = FIRST_PID + number
                probe = socket.create_connection(("127.0.0.1", target.intake), timeout=PATIENCE)
                hello = {"kind": "hello", "token": target.token, "pid": pid, "command": f"{pid}"}
                probe.sendall(json.dumps(hello).encode() + b"\n")
                probes.append(probe)
                if len(probes) > 5:
                    probes.pop(0).close()
                assert heard(target, pid)
                assert owner_sees(target) == "app.py"
                _, used, trouble = target.look()
                assert trouble is None  # every tick is on disk
                most = max(most, used)
    finally:
        strangers.close()
        for probe in probes:
            probe.close()
        code, errors = target.end()
    assert (code, errors) == (0, "")
    assert strangers.sent > 10 * MIB
    assert most - before < GROWTH


def heard(target, pid):
    return any(pid in target.look()[0] for _ in range(2000))
