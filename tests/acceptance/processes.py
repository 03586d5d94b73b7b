"""What the Robot suites drive: real processes, over HTTP and by their command lines."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from floodline.errors import ConfigError
from floodline.recorder import read_recording

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVER = EXAMPLES / "agent_server.py"
PATIENCE = 100.0  # a safety net, not a measure


class AgentServer:
    """Robot keywords: the example server as a process of its own, and a client for it."""

    ROBOT_LIBRARY_SCOPE = "SUITE"

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._process: subprocess.Popen[str] | None = None
        self._http = httpx.Client(timeout=PATIENCE)
        self._chats: set[str] = set()

    def start_server(self) -> str:
        """Start it on a free port; the same database each time."""
        return self._start(sys.executable)

    def start_recorded_server(self) -> str:
        """Start it as `make run` does, with the flight recorder beside it."""
        run = (sys.executable, "-m", "floodline", "run", "--no-dashboard")
        return self._start(*run, f"--record={self._recording}")

    def sessions_of_the_recording(self) -> dict[str, Any]:
        """Return what the recording knows of the server's sessions, once it knows something."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(ConfigError):  # before the first tick
                sessions = read_recording(self._recording).state()["sessions"]
                if sessions and sessions[0]["opened"]:
                    return dict(sessions[0])
            time.sleep(0.1)
        raise AssertionError("the recording knows of no session")

    def end_of_the_recording(self) -> dict[str, Any]:
        return dict(read_recording(self._recording).state()["exit"])

    @property
    def _recording(self) -> Path:
        return Path(self._directory.name) / "agent.rec"

    def _start(self, *command: str) -> str:
        database = Path(self._directory.name) / "agent.db"
        self._process = subprocess.Popen(
            [*command, str(SERVER), "--port", "0", "--db", str(database)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        assert first.startswith("Listening on http://"), f"the server said {first!r}"
        self._http.base_url = first.split()[2].rstrip(",")
        return str(self._http.base_url)

    def stop_server(self) -> None:
        """Ask it to end, and wait until it has."""
        self._end(lambda process: process.terminate())

    def kill_server(self) -> None:
        """Give it no chance: `kill -9`."""
        self._end(lambda process: process.kill())

    def clean_up(self) -> None:
        self.stop_server()
        self._http.close()
        self._directory.cleanup()

    def end_all_chats(self) -> None:
        """Leave nothing for the next test."""
        while self._chats:
            self.end_chat(self._chats.pop())

    def say(self, chat: str, text: str) -> dict[str, Any]:
        self._chats.add(chat)
        return self._json(self._http.post(f"/chat/{chat}", json={"text": text}))

    def say_all_at_once(self, chat: str, count: str) -> list[int]:
        """Send that many messages from as many threads; return the turns that were answered."""
        numbers = range(int(count))
        with ThreadPoolExecutor(len(numbers)) as pool:
            answers = list(pool.map(lambda n: self.say(chat, f"message {n}"), numbers))
        return sorted(answer["turns"] for answer in answers)

    def read_chat(self, chat: str) -> dict[str, Any]:
        return self._json(self._http.get(f"/chat/{chat}"))

    def texts_of(self, chat: str) -> list[str]:
        return [message["content"] for message in self.read_chat(chat)["messages"]]

    def end_chat(self, chat: str) -> None:
        self._json(self._http.delete(f"/chat/{chat}"))

    def complete_chat(self, chat: str) -> None:
        self._json(self._http.post(f"/chat/{chat}/done"))

    def live_count(self) -> int:
        return int(self._json(self._http.get("/stats"))["items"])

    def home_page(self) -> str:
        return self._http.get("/").text

    def refusal_of(self, method: str, path: str, body: str = "") -> int:
        """Send what must be refused; check that the answer explains itself; return the status."""
        response = self._http.request(method, path, content=body.encode())
        assert response.status_code >= 400, f"{method} {path} was accepted: {response.text}"
        assert response.json()["error"], "a refusal must say why"
        return response.status_code

    def _json(self, response: httpx.Response) -> dict[str, Any]:
        response.raise_for_status()
        return response.json() if response.content else {}

    def _end(self, how: Any) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            how(process)
        process.communicate(timeout=PATIENCE)


class SessionService:
    """Robot keywords: `floodline serve` as a process of its own, and a client for it."""

    ROBOT_LIBRARY_SCOPE = "SUITE"

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._process: subprocess.Popen[str] | None = None
        self._http = httpx.Client(timeout=PATIENCE)

    def start_service(self, *flags: str, tokens: str = "") -> None:
        """Start it on a free port; the same database each time in one suite."""
        store = f"sqlite:///{self._directory.name}/serve.db"
        words = ["serve", "--store", store, "--port", "0", "--drain", "0", "--no-access-log"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "floodline", *words, *flags],
            env={**os.environ, "FLOODLINE_SERVE_TOKENS": tokens},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        first = self._process.stderr.readline()
        assert " at http://" in first, f"the service said {first!r}"
        self._http.base_url = first.partition(" at ")[2].partition(";")[0]

    def kill_service(self) -> None:
        """Give it no chance: `kill -9`."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate(timeout=PATIENCE)

    def stop_service(self) -> int:
        """Send SIGTERM; return the exit status."""
        assert self._process is not None
        self._process.terminate()
        self._process.communicate(timeout=PATIENCE)
        return self._process.returncode

    def clean_up(self) -> None:
        self.stop_service()
        self._http.close()
        self._directory.cleanup()

    def request(
        self, method: str, path: str, body: Any = None, token: str = "", key: str = ""
    ) -> dict[str, Any]:
        """Return status, headers and document of any answer."""
        headers = {"authorization": f"Bearer {token}", "idempotency-key": key}
        headers = {name: value for name, value in headers.items() if value.removeprefix("Bearer ")}
        answer = self._http.request(method, path, json=body, headers=headers)
        return {
            "status": answer.status_code,
            "headers": dict(answer.headers),
            "document": answer.json(),
        }

    def new_conversation(self, token: str = "") -> str:
        return str(self._done("POST", "/v1/conversations", {}, token)["id"])

    def say(self, conversation: str, *texts: str, token: str = "", key: str = "") -> dict[str, Any]:
        """Append these messages of a user, and return the answer."""
        items = [{"role": "user", "content": text} for text in texts]
        path = f"/v1/conversations/{conversation}/items"
        return self.request("POST", path, {"items": items}, token, key)

    def texts_of(self, conversation: str, token: str = "") -> list[str]:
        path = f"/v1/conversations/{conversation}/items?order=asc&limit=100"
        items = self._done("GET", path, None, token)["data"]
        return [item["content"][0]["text"] for item in items]

    def window_of(self, conversation: str, provider: str, token: str = "") -> list[str]:
        path = f"/v1/floodline/conversations/{conversation}/window?provider={provider}"
        return [each["content"] for each in self._done("GET", path, None, token)["messages"]]

    def _done(self, method: str, path: str, body: Any, token: str) -> dict[str, Any]:
        answer = self.request(method, path, body, token)
        assert answer["status"] == 200, answer
        return dict(answer["document"])


class Commands:
    """Robot keywords: `floodline` as a user types it, on the five systems of `examples/`."""

    ROBOT_LIBRARY_SCOPE = "TEST"

    def floodline(self, *arguments: str, version: str = "leaky") -> dict[str, Any]:
        """Run a command in the folder of the examples; return its status and what it says."""
        # what they run is measured by other tests
        env = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
        done = subprocess.run(
            [sys.executable, "-m", "floodline", *arguments],
            cwd=EXAMPLES,
            env={**env, "VERSION": version},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return {"status": done.returncode, "out": done.stdout, "err": done.stderr}
