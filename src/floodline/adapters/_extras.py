"""What an adapter says when its framework is not installed."""

from __future__ import annotations


def missing(framework: str, extra: str, error: ImportError) -> ImportError:
    """Return an error to raise instead, with the command that installs the framework."""
    return ImportError(
        f"{framework} cannot be imported ({error}); run: pip install 'floodline[{extra}]'",
        name=error.name,
    )
