"""The worker without sessions of its own: they are in `floodline serve`, over HTTP.

    floodline serve --ttl "30 min" --max-sessions 20 --max-history 20
    python examples/session_worker/served.py alice "how high is the water?"

Any number of these processes, in any language, may share the service.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Callable
from typing import Any

SERVICE = os.environ.get("WORKER_SERVICE", "http://127.0.0.1:7358")


def call(method: str, path: str, body: Any = None, key: str | None = None) -> Any:
    """Send a request to the service, and return its answer."""
    headers = {"content-type": "application/json"} | ({"idempotency-key": key} if key else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(SERVICE + path, data, headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def answer(window: dict[str, Any]) -> str:
    """Stand in for the models: answer the last message, in the shape of any provider."""
    last = window["messages"][-1]
    said = last.get("content") or last["parts"]
    text = said if isinstance(said, str) else said[0]["text"]
    return f"You said {len(text.split())} words."


class SessionWorker:
    """Answers its clients, one conversation for each session id."""

    def __init__(self, call: Callable[..., Any] = call) -> None:
        self._call = call

    def _conversation(self, session_id: str) -> str:
        """Return the conversation of a session: the same key is the same conversation."""
        return str(self._call("POST", "/v1/conversations", {}, key=session_id)["id"])

    def ask(self, session_id: str, text: str, provider: str = "openai") -> str:
        """Answer a message; the service has both before this returns."""
        id = self._conversation(session_id)
        self._append(id, "user", text)
        window = f"/v1/floodline/conversations/{id}/window?provider={provider}"
        reply = answer(self._call("GET", window))
        self._append(id, "assistant", reply)
        return reply

    def _append(self, id: str, role: str, text: str) -> None:
        items = [{"role": role, "content": text}]
        self._call("POST", f"/v1/conversations/{id}/items", {"items": items})

    def sent(self, session_id: str) -> list[dict[str, Any]]:
        """Return what the next call would send along."""
        id = self._conversation(session_id)
        window = self._call("GET", f"/v1/floodline/conversations/{id}/window?provider=openai")
        return list(window["messages"])

    def complete(self, session_id: str) -> None:
        """Note that no more work is expected."""
        self._call("POST", f"/sessions/{self._conversation(session_id)}/complete")

    def delete(self, session_id: str) -> None:
        """Forget a session: the DELETE call."""
        self._call("DELETE", f"/sessions/{self._conversation(session_id)}")


if __name__ == "__main__":
    print(SessionWorker().ask(sys.argv[1], " ".join(sys.argv[2:])))
