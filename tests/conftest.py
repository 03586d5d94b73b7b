"""Random tests try the same cases on every machine, and none is judged by its speed.

`pytest tests/property --hypothesis-profile=search` looks for cases that are new.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

ANY_MACHINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("same", derandomize=True, database=None, **ANY_MACHINE)
settings.register_profile("search", **ANY_MACHINE)
settings.load_profile("same")
