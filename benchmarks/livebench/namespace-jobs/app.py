"""Jobs in a namespace of the application: one function starts them, another only marks them."""

import itertools
import time
import types


class App:
    def __init__(self):
        self.ctx = types.SimpleNamespace()


app = App()
app.ctx.jobs = {}


def finish(number):
    app.ctx.jobs[number]["status"] = "done"


def start(number):
    app.ctx.jobs[number] = {"status": "new", "text": "x" * 200}
    finish(number)


for number in itertools.count():
    start(number)
    time.sleep(0.03)
