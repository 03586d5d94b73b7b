"""The record of a rule: what it is called, what it tells and what it advises."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One rule; its page in `docs/rules` says the rest."""

    code: str
    name: str
    says: str  # the message, with the symbol put in
    advice: str
    preview: bool = False  # only on request, until it is measured
    boundable: bool = True  # a comment that names a bound answers it: it is a container that grows
