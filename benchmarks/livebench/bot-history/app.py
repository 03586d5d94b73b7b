"""A history that the program gives to an object of another class, which knows nothing of it."""

import itertools
import time


class Bot:
    def __init__(self, name):
        self.name = name
        self.handlers = []

    def on_message(self, handler):
        self.handlers.append(handler)
        return handler


bot = Bot("helper")
bot.history = {}


@bot.on_message
def remember(room, text):
    bot.history.setdefault(room, []).append(text)


for number in itertools.count():
    for handler in bot.handlers:
        handler(number % 5, f"message {number} " * 10)
    time.sleep(0.03)
