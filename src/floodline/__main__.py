"""`python -m floodline` is the same as `floodline`."""

from __future__ import annotations

import sys

from floodline.cli import main

if __name__ == "__main__":
    sys.exit(main())
