"""The rules: number, name, what is said, and what to use instead."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One rule; its page in `docs/rules` says the rest."""

    code: str
    name: str
    says: str  # the message, with the symbol put in
    advice: str


RULES = {
    rule.code: rule
    for rule in (
        Rule("FLD101", "unbounded-container", "{} grows and nothing removes from it",
             "bound it: BoundedMap(max_items=..., idle=...) or deque(maxlen=...)"),
        Rule("FLD102", "cleanup-on-one-path", "{} is emptied only by an event or at the end",
             "add a bound that needs no event: BoundedMap(idle=...), SessionScope"),
        Rule("FLD103", "cleanup-never-called", "{} has a clean-up that nobody calls",
             "call it where the work ends, or use a bound that needs no call"),
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
        Rule("FLD205", "bounded-but-sibling-grows", "{} keeps what line {line} drops beside it",
             "remove the key from both in one function, and call that"),
        Rule("FLD206", "exit-stack-grows", "{} takes more callbacks and is never unwound",
             "open one ExitStack per unit of work"),
        Rule("FLD301", "method-cache-keeps-self", "{} keeps every instance it was called on",
             "cache on the instance (functools.cached_property) or a module-level function"),
        Rule("FLD303", "cache-keyed-by-object", "{} keeps every object it was called with",
             "key it by an id, and give it a maxsize"),
        Rule("FLD401", "task-never-discarded", "{} keeps tasks that are done",
             "task.add_done_callback(tasks.discard)"),
        Rule("FLD402", "futures-not-reaped", "{} keeps futures that are done",
             "take the results as they come: as_completed, or drop the future when it is done"),
        Rule("FLD405", "handler-per-call", "{} adds a logging handler on every call",
             "add it once at start-up, or test `if not logger.handlers`"),
        Rule("FLD407", "shared-exception-raised", "{} is one object, raised again and again",
             "raise a new one each time: its traceback keeps the frames of the last raise"),
    )
}  # fmt: skip
