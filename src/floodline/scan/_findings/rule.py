"""The record of a rule: its name, its message and its advice."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One rule; its page in `docs/rules` says the rest."""

    code: str
    name: str
    says: str  # the message, with a place for the symbol
    advice: str
    preview: bool = False  # runs only on request, until it is measured
    boundable: bool = (
        True  # a comment that names a bound answers it: it reports a container that grows
    )
