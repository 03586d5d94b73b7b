"""What a finding needs beyond its four proofs to be called certain: words that say so.

Measured on public packages (`benchmarks/scan_precision`): of what has four proofs and is not about
sessions, users, messages or time, few findings are worth acting on.
"""

from __future__ import annotations

import re

from floodline.scan._model import Change
from floodline.scan._proof import Proof
from floodline.scan._removal import Removal

# those who come and go as long as a program runs
GUESTS = re.compile(
    r"(session|user|member|customer|chat|conversation|room|request|req|message|msg|event|run|job|task|"
    r"order|ticket|interaction|flow|trace|actor|webhook|token|jid|email|phone|peer|conn|connection|"
    r"websocket|ws|sid|uuid|guid|ip|addr|address|prompt|query|question|text|line|packet|record|item|"
    r"entry|turn|reply|answer|result|response|state|client_conn|thread|timestamp|ts)s?"
    r"((_|\.)?(id|ids|key|uid))?(\b|_)"
)
SESSIONS = re.compile(r"(session|user|chat|conversation|request|job|run)(_|\.)?(id|key)?\b")
# verbs for what is done for each of them
WORK = re.compile(
    r"^_*(handle|on|process|receive|recv|record|log|emit|publish|send|request|reply|respond|track|"
    r"observe|update|dispatch|submit|enqueue|write|push|store|save|put|feed|note|remember|report|"
    r"audit|ask|chat|notify|query|fetch|call|step|tick|poll|say|answer|learn|broadcast|append|add|"
    r"post|visit|consume|serve|work|run|execute|spawn|collect|sample|measure)(_|$)"
)


def is_certain(rule: str, change: Change, key: Proof, removal: Removal) -> bool:
    """Whether a finding with four proofs may be called high."""
    if "start-up" in removal.proof.claim:
        return False
    named = bool(GUESTS.search(key.claim) or GUESTS.search(change.key_text))
    if rule == "FLD108":
        return False  # how long the function lives that has it is seldom seen
    if rule == "FLD102":  # it is emptied now and then; guests come all the same
        return change.key != "append" and bool(SESSIONS.search(f"{key.claim} {change.key_text}"))
    name = change.function.rpartition(".")[2]
    if change.key == "append":
        return named or bool(WORK.match(name)) or bool(change.marks & {"while"})
    return (
        named or "a new value" in key.claim or "counts up" in key.claim or change.key_text == "key"
    )
