"""Conversation histories that stay small and stay valid for their provider."""

from __future__ import annotations

from floodline.history._archive import Archive, Page
from floodline.history._bounds import HistoryStats
from floodline.history._conversation import Conversation
from floodline.history._formats.check import Problem, check
from floodline.history._formats.markers import INTERRUPTED
from floodline.history._formats.rules import Rule, rules
from floodline.history._formats.shapes import Message
from floodline.history._summaries.extractive import extractive_summary
from floodline.history._tokens import estimate, tiktoken_counter
from floodline.history._trim import trim

__all__ = [
    "INTERRUPTED",
    "Archive",
    "Conversation",
    "HistoryStats",
    "Message",
    "Page",
    "Problem",
    "Rule",
    "check",
    "estimate",
    "extractive_summary",
    "rules",
    "tiktoken_counter",
    "trim",
]
