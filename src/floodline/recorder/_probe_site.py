"""How the probe gets into a program: one folder on its path, and one variable.

A value with a colon is where the probe reports to, `HOST:PORT:TOKEN`; `dormant` makes it sleep.
"""

from __future__ import annotations

from pathlib import Path

from floodline.recorder._probe.site import _floodline_arm

SITE = str(Path(_floodline_arm.__file__).parent)
VARIABLE = _floodline_arm.VARIABLE
