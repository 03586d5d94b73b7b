"""All the sentences of verify."""

from __future__ import annotations

from collections.abc import Iterable

from floodline._python.at_limit import AtLimit
from floodline.verify._answers.causes import Cause

CACHE = "the function's cache"  # in place of a container's name
_HELD = "{path} held at most {top} of {fed} items"
_SENTENCES = {
    Cause.NO_FILE: "there is no file {file}",
    Cause.SYNTAX_ERROR: "syntax error: {error}",
    Cause.UNREADABLE: "cannot be read: {error}",
    Cause.NO_SYMBOL: "there is no {symbol} in this file",
    Cause.NO_CONTAINER: "no container of {symbol} was found here",
    Cause.UNLIMITED: "{name} grows, and nothing limits it",
    Cause.UNLIMITED_CACHE: "{name} has no limit",
    Cause.LIMIT_NOT_SEEN: (
        "no limit on {name} was found, and not all code that adds to it is in this file"
    ),
    Cause.CONDITION_NOT_SEEN: "{name} is trimmed here, but it is unclear under which condition",
    Cause.REMOVES_NOTHING: "the size of {name} is compared, but the branch removes nothing",
    Cause.CHECK_NOT_CALLED: "what is added here is not checked: nothing calls {function}",
    Cause.CHECK_ELSEWHERE: "what is added here is not checked on the same path",
    Cause.NUMBER_NOT_KNOWN: "{name} is limited by a number that is unknown here; give `make`",
    Cause.OTHER_NUMBER: "{name} is limited to {number}, not {limit}",
    Cause.LETS_NOBODY_ADD: "{name} refuses more than {number}",
    Cause.REMOVES: "{name}, at {number}: {does}",
    Cause.POLICY_NOT_SEEN: "it is unclear whether that is {policy}",
    Cause.OTHER_POLICY: "that is not {policy}",
    Cause.RENEWAL_NOT_SEEN: "it is unclear whether reading renews an entry",
    Cause.READ_RENEWS: "reading renews an entry",
    Cause.READ_RENEWS_NOT: "reading does not renew an entry: not lru",
    Cause.READ_RENEWS_FIFO: "reading renews an entry: not fifo",
    Cause.NOT_IMPORTED: "the file cannot be imported: {error}",
    Cause.NOT_MADE: "it cannot be created; give `make`: {error}",
    Cause.NOT_FED: "it cannot be fed; give another `feed`: {error}",
    Cause.FEED_NOT_KNOWN: "it is unclear how to feed it; give `feed`: {error}",
    Cause.TOO_SLOW: "no answer within {patience:g} seconds; the process was killed",
    Cause.DIED: "no answer: the process ended with status {status}",
    Cause.NOTHING_GREW: "fed {fed} items, but none of its containers grew; give another `feed`",
    Cause.HELD_TOO_MANY: f"{_HELD}: the limit of {{limit}} is not enforced",
    Cause.HELD_TOO_FEW: f"{_HELD}: the limit is not {{limit}}",
    Cause.ITEMS_ALIKE: f"{_HELD}; give a `feed` whose items differ, to see which stay",
    Cause.EMPTIED: f"{_HELD}, and was emptied",
    Cause.NEVER_EMPTIED: f"{_HELD}, and was never emptied: not batch",
    Cause.EMPTIED_AT_ONCE: f"{_HELD}, and was emptied at once: not {{policy}}",
    Cause.FIRST_KEPT: f"{_HELD}, and the first were kept",
    Cause.NEWEST_KEPT: f"{_HELD}, and the newest were kept",
    Cause.FIRST_LEFT: f"{_HELD}, and {{kept}} of the first are left: not {{policy}}",
    Cause.FIRST_GONE: f"{_HELD}, and none of the first are left: not {{policy}}",
}
_AT_LIMIT = {
    AtLimit.FIRST: "removes the first item",
    AtLimit.LAST: "removes the last item",
    AtLimit.LEAST: "removes the item with the smallest key",
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
