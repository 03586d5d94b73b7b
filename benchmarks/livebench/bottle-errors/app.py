"""A Bottle application that collects the errors of its routes."""

import itertools
import time

from bottle import Bottle

app = Bottle()
ERRORS = []


@app.route("/fail/<number>")
def fail(number):
    ERRORS.append({"number": number, "text": "it failed " * 5})
    return "sorry"


def call(path):
    environ = {"PATH_INFO": path, "REQUEST_METHOD": "GET"}
    return app.wsgi(environ, lambda *_: None)


for number in itertools.count():
    call(f"/fail/{number}")
    time.sleep(0.03)
