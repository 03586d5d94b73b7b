"""An editor whose undo steps are a linked list of slotted nodes, without an end."""

import itertools
import time


class Step:
    __slots__ = ("before", "change", "place")

    def __init__(self, change, place, before):
        self.change, self.place, self.before = change, place, before


class Editor:
    def __init__(self):
        self.text = ""
        self.last = None

    def insert(self, words):
        self.text = (self.text + words)[-2000:]
        self.last = Step(words, len(self.text), self.last)


editor = Editor()
for number in itertools.count():
    editor.insert(f"word-{number} " * 8)
    time.sleep(0.02)
