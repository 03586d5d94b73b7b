"""A chat server that leaks: its dict of services is emptied by a close event that is often lost.

It listens on any free port and prints it. What else it keeps is bounded, by floodline.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from floodline import BoundedLog, BoundedMap, Sessions


class MemoryService:
    """What the server remembers of one user."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.notes = [f"{user} said something, {n}" for n in range(40)]


class PlanService:
    """Has a service for each user, until the user closes."""

    def __init__(self) -> None:
        self._services: dict[str, MemoryService] = {}

    def get(self, user: str) -> MemoryService:
        if user not in self._services:
            self._services[user] = MemoryService(user)
        return self._services[user]

    def clear(self, user: str) -> None:
        self._services.pop(user, None)


PLANS = PlanService()
CHATS = Sessions(dict, max_sessions=200, idle="30 s", name="chats")
REPLIES: BoundedMap[str, str] = BoundedMap(500, ttl="1 min", name="replies")
AUDIT: BoundedLog[str] = BoundedLog(5000, name="audit")


class Chat(BaseHTTPRequestHandler):
    """GET /USER says something; GET /USER/close ends it, if it ever comes."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        _, user, *close = self.path.split("/")
        if close:
            PLANS.clear(user)
            CHATS.close(user)
        else:
            with CHATS.use(user) as chat:
                chat["turns"] = chat.get("turns", 0) + 1
            REPLIES[user] = PLANS.get(user).notes[0]
        AUDIT.append(self.path)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)
