"""Twenty sessions per round, each ended by an event that does not always arrive.

floodline soak examples/plugin_host/scenario.py
VERSION=bounded floodline soak examples/plugin_host/scenario.py
"""

from __future__ import annotations

import importlib
import os

system = importlib.import_module(os.environ.get("VERSION", "leaky"))
bus = system.EventBus()
host = system.PluginHost(bus)


def round(i: int) -> None:
    for n in range(20):
        session = f"session-{i}-{n}"
        host.work(session, f"{session}: " + "look at the gauge; " * 40)
        host.work(session, "and report")
        bus.emit("session.deleted", session)
