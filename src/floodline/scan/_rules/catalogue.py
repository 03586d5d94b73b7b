"""The rules: number, name, what is said, and what to use instead."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One rule; its page in `docs/rules` says the rest."""

    code: str
    name: str
    says: str  # the message, with the symbol put in
    advice: str
    preview: bool = False  # only on request, until it is measured


RULES = {
    rule.code: rule
    for rule in (
        Rule("FLD101", "unbounded-container", "{} grows and nothing removes from it",
             "bound it: BoundedMap(max_items=..., idle=...) or deque(maxlen=...)"),
        Rule("FLD102", "cleanup-on-one-path", "{} is emptied only by an event or at the end",
             "add a bound that needs no event: BoundedMap(idle=...), SessionScope"),
        Rule("FLD103", "cleanup-never-called", "{} has a clean-up that nobody calls",
             "call it where the work ends, or use a bound that needs no call"),
        Rule("FLD104", "shared-class-container", "{} is one object for all instances of the class",
             "make it in __init__, or declare it ClassVar if it is meant to be shared", True),
        Rule("FLD105", "lookup-inserts", "{} is a defaultdict: looking up a missing key inserts it",
             "read with .get(key), or test `key in` first"),
        Rule("FLD106", "per-key-lock-map", "{} keeps a lock for every key it ever saw",
             "drop the lock with its key, or use a fixed number of striped locks"),
        Rule("FLD107", "once-set-by-user-data", "{} remembers every value it ever saw",
             "bound it: BoundedMap(max_items=...) as a set of recent values"),
        Rule("FLD108", "captured-container", "{} is captured by a function that lives on",
             "bound it, or functools.lru_cache(maxsize=...)"),
        Rule("FLD109", "removal-skipped-on-error", "{} keeps an entry when line {line} leaves",
             "remove it in `finally`, or use a context manager"),
        Rule("FLD110", "instance-registers-itself", "{} keeps every instance that was ever made",
             "use weakref.WeakSet, or remove the instance when it closes"),
        Rule("FLD111", "weak-container-kept-alive", "{} keeps dead weak references",
             "use weakref.WeakSet, or prune in the callback of weakref.ref"),
        Rule("FLD201", "limit-only-logs", "{} is compared with a limit, which only logs",
             "remove, flush or refuse at the limit: Batch(sink, max_items=...)"),
        Rule("FLD202", "trimmed-copy-only", "{} is trimmed where it is read only",
             "trim the stored list: BoundedLog(max_items=...), Conversation"),
        Rule("FLD203", "ttl-read-but-not-evicted", "{} asks for the age of entries and keeps them",
             "remove what has expired, also if nobody asks for it: BoundedMap(ttl=...)"),
        Rule("FLD204", "status-flipped-entry-kept", "{} keeps entries that are done",
             "remove the entry when it is done, or keep the last ones: BoundedMap(max_items=...)"),
        Rule("FLD205", "bounded-but-sibling-grows", "{} keeps what line {line} drops beside it",
             "remove the key from both in one function, and call that"),
        Rule("FLD206", "exit-stack-or-task-group-grows", "{} takes more and is never unwound",
             "open one ExitStack per unit of work"),
        Rule("FLD301", "method-cache-keeps-self", "{} keeps every instance it was called on",
             "cache on the instance (functools.cached_property) or a module-level function"),
        Rule("FLD302", "unbounded-function-cache", "{} keeps every result it ever gave",
             "give it a size: functools.lru_cache(maxsize=...)", True),
        Rule("FLD303", "cache-keyed-by-object", "{} keeps every object it was called with",
             "key it by an id, and give it a maxsize"),
        Rule("FLD401", "task-never-discarded", "{} keeps tasks that are done",
             "task.add_done_callback(tasks.discard)"),
        Rule("FLD402", "futures-not-reaped", "{} keeps futures that are done",
             "take the results as they come: as_completed, or drop the future when it is done"),
        Rule("FLD403", "listener-never-removed", "{} adds a listener that nobody removes",
             "remove it when the owner ends, or hand over a weakref.WeakMethod", True),
        Rule("FLD404", "timer-never-cancelled", "{} sets its own timer again and nobody cancels it",
             "keep the timer and cancel it where the owner ends", True),
        Rule("FLD405", "handler-per-call", "{} adds a logging handler on every call",
             "add it once at start-up, or test `if not logger.handlers`"),
        Rule("FLD406", "contextvar-not-reset", "{} is set for each call and never reset",
             "token = var.set(...), and var.reset(token) in `finally`", True),
        Rule("FLD407", "shared-exception-raised", "{} is one object, raised again and again",
             "raise a new one each time: its traceback keeps the frames of the last raise"),
        Rule("FLD501", "unbounded-queue", "{} is a queue without a limit",
             "give it a maxsize, so that a slow reader slows the writer down", True),
        Rule("FLD503", "handle-held-open", "{} is opened and never closed",
             "open it in a `with` block, or close it in close() and __exit__", True),
        Rule("FLD504", "label-cardinality", "{} makes a series of a metric for every value it sees",
             "put ids into logs or traces; a label has a few values", True),
        Rule("FLD505", "client-per-call", "{} makes a client on every call and never closes it",
             "make it once and share it, or open it in a `with` block"),
    )
}  # fmt: skip
