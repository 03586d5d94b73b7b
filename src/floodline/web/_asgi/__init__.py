"""Sessions in ASGI apps: what a request holds, its middleware, its errors, a streamed turn."""
