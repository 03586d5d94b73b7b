"""A Flask service that remembers each token it has seen."""

import itertools
import time

from flask import Flask

app = Flask(__name__)
SEEN = {}


@app.get("/t/<token>")
def token(token):
    SEEN[token] = time.time()
    return {"seen": len(SEEN)}


client = app.test_client()
for number in itertools.count():
    client.get(f"/t/{number}")
    time.sleep(0.03)
