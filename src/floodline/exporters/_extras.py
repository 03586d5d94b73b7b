"""Importing the libraries that only users of an exporter need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from floodline.errors import ConfigError


def required(module: str, extra: str) -> Any:
    """Import a module, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{module!r} cannot be imported ({error}); run: pip install 'floodline[{extra}]'"
        ) from error
