"""Every adapter can be imported where its framework is installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import floodline.adapters

ADAPTERS = [file.stem for file in Path(floodline.adapters.__file__).parent.glob("[!_]*.py")]


@pytest.mark.parametrize("adapter", sorted(ADAPTERS))
def test_an_adapter_exports_what_it_defines(adapter: str) -> None:
    try:
        module = import_module(f"floodline.adapters.{adapter}")
    except ImportError as error:
        pytest.skip(str(error))
    assert all(getattr(module, name).__module__ == module.__name__ for name in module.__all__)
