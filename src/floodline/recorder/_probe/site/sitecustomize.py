"""Starts the probe of `floodline run`, then runs the sitecustomize that this one hides.

It parses on every Python from 3.6, because each child process of a program runs it. The directory
leaves the path at once, so that the program sees the path it would have without us.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  # pathlib is not loaded yet

if sys.version_info >= (3, 11) and os.environ.get("FLOODLINE_PROBE"):
    try:
        import _floodline_arm  # type: ignore[import-not-found]  # it lies beside this file

        _floodline_arm.arm()
    except Exception as error:  # the program must start, whatever fails here
        sys.stderr.write("floodline: this process is not watched: %r\n" % (error,))  # noqa: UP031  # 3.6

sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]  # noqa: PTH100
_mine = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # type: ignore[import-not-found] # noqa: F401  # the one that would have run
except ImportError as error:
    if error.name != "sitecustomize":
        raise
    if _mine is not None:
        sys.modules["sitecustomize"] = _mine  # the import system looks it up when we return
