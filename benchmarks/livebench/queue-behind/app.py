"""A queue whose consumer is slower than its producer."""

import queue
import threading
import time


class Mailer:
    def __init__(self):
        self.waiting = queue.Queue()

    def send(self, text):
        self.waiting.put({"text": text})

    def work(self):
        while True:
            self.waiting.get()
            time.sleep(0.2)


mailer = Mailer()
threading.Thread(target=mailer.work, daemon=True).start()
while True:
    mailer.send("hello " * 20)
    time.sleep(0.02)
