"""All sentences of verify, made from what it saw."""

from __future__ import annotations

from collections.abc import Iterable

from floodline._python.at_limit import AtLimit
from floodline.verify._causes import Cause

CACHE = "the function's cache"  # in the place of a container's name
_HELD = "{path} held {top} at most, fed {fed}"
_SENTENCES = {
    Cause.NO_FILE: "there is no file {file}",
    Cause.SYNTAX_ERROR: "syntax error: {error}",
    Cause.UNREADABLE: "cannot be read: {error}",
    Cause.NO_SYMBOL: "there is no {symbol} in this file",
    Cause.NO_CONTAINER: "{symbol} keeps no container that is seen here",
    Cause.UNLIMITED: "{name} grows, and nothing limits it",
    Cause.UNLIMITED_CACHE: "{name} has no limit",
    Cause.LIMIT_NOT_SEEN: (
        "no limit of {name} is seen, and not all that adds to it is in this file"
    ),
    Cause.CONDITION_NOT_SEEN: "{name} is made smaller here, under which condition is not seen",
    Cause.REMOVES_NOTHING: "the size of {name} is compared, and the branch removes nothing",
    Cause.CHECK_NOT_CALLED: "what is added here is not checked: nothing calls {function}",
    Cause.CHECK_ELSEWHERE: "what is added here is not checked on the same path",
    Cause.NUMBER_NOT_KNOWN: "{name} is limited by a number that is not known here; give `make`",
    Cause.OTHER_NUMBER: "{name} is limited to {number}, not to {limit}",
    Cause.LETS_NOBODY_ADD: "{name} lets nobody add more than {number}",
    Cause.REMOVES: "{name}, at {number}: {does}",
    Cause.POLICY_NOT_SEEN: "whether that is {policy} is not seen",
    Cause.OTHER_POLICY: "that is not {policy}",
    Cause.RENEWAL_NOT_SEEN: "whether reading an entry renews it is not seen",
    Cause.READ_RENEWS: "reading renews",
    Cause.READ_RENEWS_NOT: "no read renews an entry: that is not lru",
    Cause.READ_RENEWS_FIFO: "reading renews: not fifo",
    Cause.NOT_IMPORTED: "the file cannot be imported: {error}",
    Cause.NOT_MADE: "it cannot be made; give `make`: {error}",
    Cause.NOT_FED: "it cannot be fed; give another `feed`: {error}",
    Cause.FEED_NOT_KNOWN: "how to feed it is not known; give `feed`: {error}",
    Cause.TOO_SLOW: "no answer: nothing within {patience:g} seconds; it was ended",
    Cause.DIED: "no answer: the process ended with status {status}",
    Cause.NOTHING_GREW: "fed {fed}, and no container of it grew; give another `feed`",
    Cause.HELD_TOO_MANY: f"{_HELD}: the limit of {{limit}} does not bind",
    Cause.HELD_TOO_FEW: f"{_HELD}: the limit is not {{limit}}",
    Cause.ITEMS_ALIKE: f"{_HELD}; give a `feed` whose items differ, to see which stay",
    Cause.EMPTIED: f"{_HELD}, and it was emptied",
    Cause.NEVER_EMPTIED: f"{_HELD}, and it was never emptied: that is no batch",
    Cause.EMPTIED_AT_ONCE: f"{_HELD}, and was emptied at once: not {{policy}}",
    Cause.FIRST_KEPT: f"{_HELD}, and the first are kept",
    Cause.NEWEST_KEPT: f"{_HELD}, and the newest are kept",
    Cause.FIRST_LEFT: f"{_HELD}, and {{kept}} of the first are left: not {{policy}}",
    Cause.FIRST_GONE: f"{_HELD}, and none of the first is left: not {{policy}}",
}
_AT_LIMIT = {
    AtLimit.FIRST: "removes the first that came",
    AtLimit.LAST: "removes the last that came",
    AtLimit.LEAST: "removes the smallest by a key",
    AtLimit.ALL: "empties it",
    AtLimit.REJECT: "refuses new items",
    AtLimit.SOME: "removes items",
}


def sentence(cause: Cause, details: dict[str, object]) -> str:
    """Return what was seen as a sentence."""
    return _SENTENCES[cause].format_map(details)


def does(kinds: Iterable[AtLimit]) -> str:
    """Return what a container does at its limit, as the verb of a sentence."""
    return " or ".join(_AT_LIMIT[kind] for kind in sorted(kinds, key=lambda kind: kind.value))
