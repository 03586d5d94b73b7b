from __future__ import annotations

from floodline import BoundedMap

SIZE = 10_000


class Map:
    def setup(self):
        self.map = BoundedMap(SIZE, idle="30 min")
        self.keys = [f"session-{n}" for n in range(SIZE)]
        for key in self.keys:
            self.map[key] = key
        self.fresh = 0

    def time_get(self):
        for key in self.keys:
            self.map[key]

    def time_replace(self):
        for key in self.keys:
            self.map[key] = key

    def time_set_evicting(self):
        for n in range(self.fresh, self.fresh + SIZE):
            self.map[n] = n
        self.fresh += SIZE
