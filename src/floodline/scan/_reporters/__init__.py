"""One module per format; each turns a report into text."""

from __future__ import annotations
