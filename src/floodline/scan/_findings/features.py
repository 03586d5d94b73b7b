"""What a finding is ranked by: life, path, key, its name, removal, intent and what is kept.

None of these refutes a finding. A name only ever counts here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.origins import ASKED, NO_KEY, PARAMETER, parts_of
from floodline.scan._facts.references import INSTANCE
from floodline.scan._program.commands import COMMAND_LINE
from floodline.scan._program.program import Held
from floodline.scan._proofs.events import in_a_loop
from floodline.scan._proofs.evidence import ASSUMED, PROVED, REFUTED, UNKNOWN, Evidence
from floodline.scan._proofs.grounds import Holder, Key, Origin, Path, Run
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.removal import EVENT, NONE, PUBLIC, Removal

WORD = re.compile(r"[A-Za-z_]\w*(?!\w*\()")
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
IDS = {"id", "ids", "uuid", "uid", "guid", "sid", "token", "hash", "digest"}
LIKE_AN_ID = re.compile(r"^(?!android|invalid)[a-z]{4,}id$")  # `userid`, `chatid`
# who an event comes from: one for each, like an id
PEOPLE = {
    "user", "username", "nick", "nickname", "sender", "author", "member", "recipient", "peer",
    "chat", "conversation", "session", "email", "ip", "identifier",
}  # fmt: skip
# whose ids are as many as there are people and what they say; others may number what is set up
ABOUT = PEOPLE | {"message", "msg", "group", "guild", "channel", "room", ""}
KINDS = {"name", "names", "type", "kind", "model", "cls", "class", "module", "path", "field"}
UNKNOWN_CALLERS = (
    Path.UNSEEN, Path.UNSEEN_ABOVE, Path.FAR_FROM_EVENT, Path.FAR_FROM_PASSED, Path.PASSED,
    Path.FOR_CALLERS,
)  # fmt: skip
UNSEEN = {"open", "uncalled", "unknown"}
BROUGHT = (Origin.WITH_EVENT, Origin.GIVEN_FOR_EVENT, Origin.RECEIVED)
CREATED = {"made", "key", "self"}
WORK = {"task", "lock", "future", "waiter"}
LIVES = (
    (Holder.MADE_ANEW, "anew"),
    (Holder.NEVER_MADE, "unmade"),
    (Holder.NEVER_NAMED, "unmade"),
    (Holder.KEPT_BUT_OTHERS_PASS, "mixed"),
    (Holder.HANDED_ON, "handed"),
    (Holder.KEPT_IN, "entry"),
    (Holder.START, "run"),
    (Holder.OWN_LOOP, "run"),
    (Holder.MADE_BY_PROGRAM, "run"),
)


class Features(NamedTuple):
    """One value for each column of the table of weights."""

    life: str
    path: str
    key: str
    word: str
    removal: str
    intent: str
    what: str
    doubts: str


def features(
    judge: Judge,
    held: Held,
    file: FileFacts,
    change: Change,
    proofs: tuple[Evidence, Evidence, Evidence],
    removal: Removal,
) -> Features:
    """Return what is known about one container that grows."""
    holder, path, key = proofs
    kind = _key(change, key)
    runs = _path(judge, file, change, path)
    here = f"{file.module}:{change.function}"
    looped = in_a_loop(change) and judge.reach.is_passed(here)
    served = here in judge.paths.events.handlers and path.reason.rests_on(Run.CALLED_FOR_EVENTS)
    called = _word(judge, file, change) if change.key != NO_KEY else "none"
    if runs == "silent" and kind in ("new", "event"):
        runs = "uncalled"  # it gets what is new in another way
    return Features(
        _life(judge, held, holder, looped, served=served), runs, kind, called,
        _removal(removal, path, runs), _intent(held), _what(held, change),
        _doubts((*proofs, removal.proof)),
    )  # fmt: skip


def _doubts(proofs: tuple[Evidence, ...]) -> str:
    return "some" if any(proof.state != PROVED for proof in proofs) else "none"


def _life(judge: Judge, held: Held, holder: Evidence, looped: bool, *, served: bool) -> str:
    if holder.state in (PROVED, ASSUMED):
        return "kept" if holder.state == PROVED else "library"
    if held.made[0].ref.kind == INSTANCE and _is_entered(judge, held.key.rpartition(".")[0]):
        return "scope"
    if holder.reason.ground is Holder.NEVER_NAMED and not judge.trusts():
        return "unnamed"
    if holder.state == REFUTED:
        return "run" if looped else "passing"  # a loop that goes on without it keeps it
    life = next((name for ground, name in LIVES if holder.reason.rests_on(ground)), "unknown")
    return "run" if life == "anew" and served else life  # events come after the call that made it


def _is_entered(judge: Judge, owner: str) -> bool:
    """Return True if a class is a context manager: an instance often lives as long as its block."""
    names = judge.program.names
    return owner in names.classes and any(
        names.method(owner, method) for method in ("__enter__", "__aenter__")
    )


def _path(judge: Judge, file: FileFacts, change: Change, path: Evidence) -> str:
    function = f"{file.module}:{change.function}"
    known = judge.program.names.functions.get(function)
    # an app calls a coroutine; no command line gets a function in an attribute, or by a name
    called = (known is not None and known.waits) or path.reason.rests_on(Run.REGISTERED)
    once = COMMAND_LINE & set(file.module.split(".")) and not in_a_loop(change)
    of_bot = path.state == PROVED and (called or (once and _is_awaited(judge, function)))
    if (once and not of_bot) or judge.is_tool(file):
        return "command"
    if path.state != PROVED and judge.decorates(function):
        return "definition"
    if path.reason.ground in UNKNOWN_CALLERS:
        if not judge.paths.events.shown:
            return "open"
        passed = path.reason.ground is Path.PASSED
        return "uncalled" if passed or not _loads(judge, file, change) else "silent"
    if path.reason.ground is Path.UNNAMED:
        return "unnamed"
    return {PROVED: "event", ASSUMED: "loop"}.get(path.state, "unknown")


def _is_awaited(judge: Judge, function: str) -> bool:
    """Return True if a coroutine that is registered for an event leads to a function."""
    known = judge.program.names.functions
    above = (key for key in judge.reach.ancestors(function) if key in known)
    return any(known[key].waits and judge.reach.is_handler(key) for key in above)


def _loads(judge: Judge, file: FileFacts, change: Change) -> bool:
    """Return True if a function adds what a loop finds, and no event can come in by a parameter."""
    if "for" not in change.marks:
        return False
    found = judge.program.names.functions.get(f"{file.module}:{change.function}")
    return found is not None and len(found.parameters) <= bool(found.owner)


def _key(change: Change, key: Evidence) -> str:
    if change.key == NO_KEY:
        return "adds" if key.state == PROVED else "stores"
    if key.state == PROVED:
        return "new" if key.reason.rests_on(Origin.NEW_EACH_TIME) else "event"
    if key.reason.rests_on(Key.OTHERS_REFUSED) or key.reason.rests_on(Key.IN_ANOTHER_TABLE):
        return "checked"
    if change.op == "update" and key.state == UNKNOWN:
        return "unknown"  # nothing tells which keys another map has
    if key.reason.rests_on(Origin.MADE_OF):
        return "checked" if key.reason.rests_on(Key.MAY_BE_REFUSED) else "derived"
    if key.state == ASSUMED and any(map(key.reason.rests_on, BROUGHT)):
        return "narrowed"
    return "caller" if key.state == ASSUMED else "unknown"


def _word(judge: Judge, file: FileFacts, change: Change) -> str:
    """Return what the name of a key says, or of the parameter it is made of: `key = str(user)`."""
    said = word(change.key_text)
    for part in parts_of(change.key) if said == "other" else ():
        found = judge.program.names.functions.get(
            f"{file.module}:{part.function or change.function}"
        )
        if part.kind == PARAMETER and found is not None:
            asked = [step.name for step in part.steps if step.how == ASKED]
            named = " ".join([*found.parameters[part.number : part.number + 1], *asked])
            said = "who" if word(named) == "who" else said
    return said


def word(text: str) -> str:
    """Return what the name of a key looks like: an id of whom or what, a kind, or something else.

    Of several names the last one counts, unless one is an id: the most open part decides.
    """
    found = [[part.lower() for part in PART.findall(name)] for name in WORD.findall(text)]
    names = [parts for parts in found if parts]
    ends = [parts[-1] for parts in names]
    whose = [
        parts[-2] if len(parts) > 1 else before[-1] if before else ""
        for before, parts in zip([[], *names], names, strict=False)
        if parts[-1] in IDS or LIKE_AN_ID.match(parts[-1])
    ]
    if whose:
        return "id" if ABOUT.isdisjoint(whose) else "who"
    if ends and (ends[-1] in PEOPLE or (ends[-1] == "name" and PEOPLE & {*names[-1]})):
        return "who"
    return "kind" if ends and ends[-1] in KINDS else "other"


def _removal(removal: Removal, path: Evidence, runs: str) -> str:
    if removal.when == NONE and removal.proof.state != PROVED:
        return "escapes"
    if (
        removal.proof.state != PROVED
        and removal.when in (PUBLIC, EVENT if path.reason.ground is Path.PASSED else PUBLIC)
        and runs in UNSEEN
        and any(way.named for way in removal.ways if way.when == removal.when)
    ):
        return "paired"  # who adds and who removes is equally unseen
    return removal.when.value


def _intent(held: Held) -> str:
    if any(not limit.acts for _, limit in held.limits):
        return "cap"
    signs = {mark.kind for _, mark in held.signs}
    if "ttl" in signs:
        return "age"
    if "flip" in signs:
        return "status"
    return "part" if held.slices else "none"


def _what(held: Held, change: Change) -> str:
    if change.value in WORK:
        return "work"
    kinds = {made.kind for made in held.made}
    if change.depth:
        return "inner"
    if change.key == NO_KEY:
        return "item"
    return "member" if kinds == {"set"} else "made" if change.value in CREATED else "value"
