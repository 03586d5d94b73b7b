"""A Flask service that keeps the last hundred requests."""

import collections
import itertools
import time

from flask import Flask, request

app = Flask(__name__)
recent = collections.deque(maxlen=100)


@app.get("/t/<token>")
def token(token):
    recent.append((token, request.path))
    return {"recent": len(recent)}


client = app.test_client()
for number in itertools.count():
    client.get(f"/t/{number}")
    time.sleep(0.03)
