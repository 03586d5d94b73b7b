"""`floodline demo`: what it draws, what it says, and that nothing is left running."""

from __future__ import annotations

import io
import json
import signal
import sys
import threading

import pytest
from rich.console import Console

from floodline.cli import main
from floodline.cli._demo import command as demo_command
from floodline.cli._demo import players as demo_players
from floodline.cli._demo.command import SYSTEMS
from floodline.cli._demo.curves import Screen, bars
from floodline.cli._demo.players import Player, play_until_done

MIB = 1 << 20
ENDLESS = "import time\nwhile True: time.sleep(60)"


class StillPlayer:
    """What the drawing and the command need of a player."""

    def __init__(self, version, verdict=None, text=""):
        self.version, self.verdict, self.status = version, verdict, 9
        self.curve = [(0.2 * n, (10 + n) * MIB) for n in range(100)]
        self.done = 12
        self.folder = "/somewhere"
        self.record = None if verdict is None else {"text": text, "answer": {"verdict": verdict}}


@pytest.fixture
def played(monkeypatch):
    """Make the demo play nothing and answer what a test puts in."""
    players = []
    monkeypatch.setattr(demo_command, "play_until_done", lambda folder, rounds, screen: players)
    return players


def test_the_curves_begin_at_zero_and_share_a_scale():
    assert bars([1, 2, 4], 4, 2, 4) == ["  █ ", "▄██ "]
    assert bars([0, 8, 1, 1], 2, 1, 8) == ["█▁"]
    assert bars([], 3, 1, 8) == ["   "]


def test_a_terminal_shows_both_curves_next_to_each_other():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, color_system=None)
    with Screen(30, console) as screen:
        screen.draw([StillPlayer("leaky"), StillPlayer("bounded")])
    text = out.getvalue()
    assert "leaky  109 MiB  round 12 of 30" in text
    assert "bounded  109 MiB" in text
    assert "from 0 to 109 MiB" in text


def test_a_pipe_gets_plain_lines_and_not_too_many(capsys):
    with Screen(30, Console(file=io.StringIO())) as screen:
        for _ in range(5):
            screen.draw([StillPlayer("leaky"), StillPlayer("bounded")])
    assert capsys.readouterr().out == ("leaky: 109 MiB, round 12   bounded: 109 MiB, round 12\n")


def test_the_answers_come_with_the_next_steps(played, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(demo_command.FOLDERS[1].parent)
    played += [
        StillPlayer("leaky", "growing", "GROWING\n  fed at /somewhere/leaky.py:26"),
        StillPlayer("bounded", "bounded", "BOUNDED"),
    ]
    out = tmp_path / "demo.json"
    assert main(["demo", "plugin-host", "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert "fed at leaky.py:26" in text
    steps = text.partition("To look closer:\n")[2].splitlines()
    assert steps[0] == "  cd examples/plugin_host"
    folder = demo_command.FOLDERS[1] / "plugin_host"
    named = [word for step in steps[1:] for word in step.split() if "." in word]
    assert [file for file in named if not (folder / file).exists()] == []
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["schema"] == 1
    assert document["leaky"] == {"verdict": "growing"}
    assert document["errors"] == []


def test_an_answer_that_is_not_the_expected_one_is_a_failure(played, capsys):
    played += [StillPlayer("leaky", "growing", "GROWING"), StillPlayer("bounded")]
    assert main(["demo"]) == 1
    assert "its process ended with status 9" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "choose one of: plan_service, session_worker"),
        (["--json", "/nowhere/at/all.json"], "its folder does not exist"),
        (["--rounds", "3"], "--rounds"),
    ],
)
def test_what_cannot_be_run_is_a_usage_error(arguments, said, capsys):
    assert main(["demo", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_broken_installation_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo_command, "FOLDERS", (tmp_path,))
    assert main(["demo"]) == 2
    assert "plan_service is missing" in capsys.readouterr().err


def test_help_names_every_system(capsys):
    main(["demo", "--help"])
    text = capsys.readouterr().out
    assert [name for name in SYSTEMS if name not in text] == []


def test_no_process_is_left_when_the_demo_is_interrupted(tmp_path):
    (tmp_path / "scenario.py").write_text(ENDLESS, encoding="utf-8")
    seen: list[Player] = []

    class Interrupted:
        def draw(self, players):
            seen.extend(players)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_until_done(tmp_path, 40, Interrupted())
    assert [player.process.returncode for player in seen] == [-signal.SIGTERM] * 2


def test_a_process_that_does_not_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_players, "PATIENCE", 0.05)
    ready = tmp_path / "ready"
    deaf = "import os, pathlib, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    deaf += f"pathlib.Path({str(ready)!r} + os.environ['VERSION']).touch()\n{ENDLESS}"
    (tmp_path / "scenario.py").write_text(deaf, encoding="utf-8")
    seen: list[Player] = []

    class Interrupted:
        def draw(self, players):
            seen[:] = players
            if all((tmp_path / f"ready{version}").exists() for version in ("leaky", "bounded")):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_until_done(tmp_path, 40, Interrupted())
    assert [player.process.returncode for player in seen] == [-signal.SIGKILL] * 2


def test_the_dashboards_are_announced_and_ctrl_c_brings_the_answers(tmp_path, monkeypatch, capsys):
    """The recorder is stood in for: what is tested is who starts, tells and ends it."""
    stand_in = tmp_path / "stand_in.py"
    stand_in.write_text(
        "import signal, sys\n"
        "try:\n"
        " print('floodline: dashboard at http://127.0.0.1:1/', file=sys.stderr, flush=True)\n"
        " signal.pause()\n"
        "except KeyboardInterrupt: print('UNDECIDED', sys.argv[-2:], file=sys.stderr)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(demo_players, "RUN", (str(stand_in),))
    both = threading.Semaphore(0)
    told = demo_players.click.echo

    def echo(text="", **more):
        told(text, **more)
        if "http://" in text:
            both.release()

    monkeypatch.setattr(demo_players.click, "echo", echo)

    def interrupt():
        both.acquire()
        both.acquire()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` ignores it
    threading.Thread(target=interrupt).start()
    try:
        assert main(["demo", "--web"]) == 0
    finally:
        signal.signal(signal.SIGINT, before)
    text = capsys.readouterr().out
    assert text.count("http://127.0.0.1:1/") == 2
    assert "bounded.py\nUNDECIDED ['plan_service', 'bounded']" in text


def test_dashboards_need_their_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "floodline.web._dashboard.server_thread", None)
    assert main(["demo", "--web"]) == 2
    assert "pip install 'floodline[web]'" in capsys.readouterr().err
