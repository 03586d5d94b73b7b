"""Containers that cannot outgrow their bounds, and lose nothing silently when they shrink."""

from __future__ import annotations

from floodline.bounded._arguments import Pressure, Sheds
from floodline.bounded._batch import Batch
from floodline.bounded._log import BoundedLog
from floodline.bounded._map import BoundedMap

__all__ = ["Batch", "BoundedLog", "BoundedMap", "Pressure", "Sheds"]
