"""Import time is a benchmark: `import floodline` stands in every program that uses any of it."""

from __future__ import annotations


def timeraw_import_floodline():
    return "import floodline"


def timeraw_import_bounded_map():
    return "from floodline import BoundedMap"


def timeraw_import_sessions():
    return "from floodline import Sessions"
