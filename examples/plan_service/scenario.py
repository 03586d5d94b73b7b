"""Four sessions per round: one is cleared, three are abandoned, each by another code path.

floodline soak examples/plan_service/scenario.py
VERSION=bounded floodline soak examples/plan_service/scenario.py
"""

from __future__ import annotations

import contextlib
import importlib
import os

plans = importlib.import_module(os.environ.get("VERSION", "leaky")).PlanService()


def round(i: int) -> None:
    goal = f"plan {i}: " + "cross the river before the flood comes; " * 2000
    plans.create_plan(f"finished-{i}", goal)
    plans.run_step(f"finished-{i}", "pack")
    plans.clear_memory(f"finished-{i}")

    plans.create_plan(f"forgotten-{i}", goal)
    with contextlib.suppress(ValueError):
        plans.create_plan(f"failed-{i}", goal)
        plans.run_step(f"failed-{i}", "")
        plans.clear_memory(f"failed-{i}")
    plans.review(f"only-looked-at-{i}")


# for `floodline soak --profile baseline|stress|chaos`, which calls these instead of round(i)


def open_session(id: str) -> None:
    plans.create_plan(id, "cross the river before the flood comes")


def work(id: str) -> None:
    plans.run_step(id, "pack")


def close_session(id: str) -> None:
    plans.clear_memory(id)
