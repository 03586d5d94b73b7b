"""The five systems of `examples/`, loaded so that their files do not get in each other's way.

As a scenario of `floodline soak` it is all five at once, in the version that VERSION names.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[1] / "examples"
FILLING = 24  # rounds until everything bounded is full
NAMES = ("plan_service", "session_worker", "swarm_caches", "stage_pipeline", "plugin_host")


def load(name: str, part: str) -> ModuleType:
    """Import a file of a system under a name of its own; what it imports is its neighbours."""
    spec = importlib.util.spec_from_file_location(f"{name}_{part}", EXAMPLES / name / f"{part}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # a dataclass looks for its module
    sys.path.insert(0, str(EXAMPLES / name))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
        for version in ("leaky", "bounded"):
            sys.modules.pop(version, None)
    return module


async def setup() -> None:
    global scenarios
    scenarios = [load(name, "scenario") for name in NAMES]
    for scenario in scenarios:
        if hasattr(scenario, "setup"):
            folder = str(EXAMPLES / scenario.__name__.removesuffix("_scenario"))
            sys.path.insert(0, folder)  # it imports its version here
            await scenario.setup()
            sys.path.remove(folder)
    for i in range(FILLING):
        await round(-i)


async def round(i: int) -> None:  # noqa: A001  # the name in a scenario
    for scenario in scenarios:
        result = scenario.round(i)
        if inspect.isawaitable(result):
            await result


async def teardown() -> None:
    for scenario in scenarios:
        if hasattr(scenario, "teardown"):
            await scenario.teardown()
