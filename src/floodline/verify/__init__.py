"""Proves or refutes announced fixes, from the source and by feeding the code beyond the limit."""

from __future__ import annotations

from floodline.verify._answers.answer import Answer, Evidence, Judgement, document, text
from floodline.verify._claims import POLICIES, Claim, load
from floodline.verify._verify import verify

__all__ = [
    "POLICIES",
    "Answer",
    "Claim",
    "Evidence",
    "Judgement",
    "document",
    "load",
    "text",
    "verify",
]
