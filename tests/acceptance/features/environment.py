"""Make the driver importable, and give each scenario a clock of its own."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from driver import Clock, plan_kit


def before_scenario(context, scenario):
    context.clock = Clock()
    context.error = None
    if scenario.feature.filename.endswith("test_kit.feature"):
        context.floodline = plan_kit()
