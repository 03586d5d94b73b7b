"""A client of the service without a socket, and the items that it appends."""

from __future__ import annotations

import httpx


class Asking:
    """Sends requests one after another; each returns the response."""

    def __init__(self, app, loop, **headers):
        self.app, self._loop = app, loop
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app, raise_app_exceptions=False),
            base_url="http://localhost",
            headers=headers,
        )

    def __call__(self, method, path, **options):
        return self.wait(self._client.request(method, path, **options))

    def wait(self, work):
        return self._loop.run_until_complete(work)

    def new(self, *items, **more):
        answer = self("POST", "/v1/conversations", json={"items": list(items), **more})
        assert answer.status_code == 200, answer.text
        return answer.json()["id"]

    def append(self, id, *items, **options):
        return self("POST", f"/v1/conversations/{id}/items", json={"items": list(items)}, **options)

    def items(self, id, **query):
        answer = self("GET", f"/v1/conversations/{id}/items", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def texts(self, id):
        listed = self.items(id, order="asc", limit=100)["data"]
        return [item["content"][0]["text"] for item in listed]


def text(words, id=None, role="user"):
    """Return a message as a client writes it."""
    return {"role": role, "content": words} | ({} if id is None else {"id": id})
