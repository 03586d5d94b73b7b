"""Who may read the dashboard, and what a browser may do with it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from urllib.parse import parse_qs, quote, unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
COOKIE = "Path=/; HttpOnly; SameSite=Strict"
NO_TOKEN = "This dashboard needs its token: open the full address that floodline run printed.\n"
NO_HOST = "This dashboard answers only to localhost; open the address that floodline run printed.\n"
NO_SITE = "This address is for the dashboard's own page, not for other sites.\n"

NO_FILE = "The recorder could not open what this page needs; try again in a few seconds.\n"


class Access:
    """Wraps an app: checks the token, or the host where there is none, and adds strict headers.

    Without a token the app is for this machine only, and a foreign host name that points here is
    refused. With one, it is read once from the address and then kept in a cookie.
    """

    def __init__(self, app: ASGIApp, *, token: str | None) -> None:
        self.app = app
        self.token = token
        # cookies ignore the port, so two dashboards on one host need two names
        mark = hashlib.sha256((token or "").encode()).hexdigest()[:12]
        self.cookie = f"floodline_{mark}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = None if self.token is None else token_of_address(scope, self._right)
        refusal = self._refusal(scope, headers, given)
        app: ASGIApp = PlainTextResponse(refusal[1], refusal[0]) if refusal else self.app
        started = False

        async def sealed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = MutableHeaders(scope=message)
                own.update(HEADERS)
                own.setdefault("cache-control", "no-store")
                if given is not None and not refusal:
                    own.append("set-cookie", f"{self.cookie}={quote(given)}; {COOKIE}")
            await send(message)

        try:
            await app(scope, receive, sealed)
        except OSError:  # no descriptor for a file: to be told to one reader, not to the log
            if started:
                raise
            await PlainTextResponse(NO_FILE, 503, {"retry-after": "10"})(scope, receive, sealed)

    def _refusal(self, scope: Scope, headers: Headers, given: str | None) -> tuple[int, str] | None:
        if self.token is None:
            if _hostname(headers.get("host", "")) not in LOOPBACK:
                return 421, NO_HOST
        elif given is None and not has_token(headers, self.cookie, self._right):
            return 401, NO_TOKEN
        # other sites cannot read an answer, but could use up the reader slots
        foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        return (403, NO_SITE) if foreign and scope["path"] not in ("", "/") else None

    def _right(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), (self.token or "").encode())


def token_of_address(scope: Scope, is_right: Callable[[str], bool]) -> str | None:
    """Return the token if the address has a right one."""
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return next((text for text in query.get("token", ()) if is_right(text)), None)


def has_token(headers: Headers, cookie: str, is_right: Callable[[str], bool]) -> bool:
    """Return True if a right token came as a bearer or in the cookie."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and is_right(text.strip()):
        return True
    # by hand: other servers on this host may have set cookies that no parser accepts
    kept = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return any(name == cookie and is_right(unquote(text)) for name, _, text in kept)


def _hostname(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
