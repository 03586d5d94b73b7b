"""A Starlette application that keeps what each caller sent in its state."""

import asyncio
import itertools

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


async def put(request):
    inbox = request.app.state.inbox
    inbox.append(request.path_params["text"] * 10)
    return JSONResponse({"many": len(inbox)})


app = Starlette(routes=[Route("/{text}", put)])
app.state.inbox = []


async def call(path):
    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
    await app({**scope, "app": app}, None, lambda _: asyncio.sleep(0))


async def main():
    for number in itertools.count():
        await call(f"/message-{number}")
        await asyncio.sleep(0.03)


asyncio.run(main())
