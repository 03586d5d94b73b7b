"""Proofs 2 and 3: does it grow on a path that repeats, and is the range of keys open?"""

from __future__ import annotations

import re

from floodline.scan._link import Edge, Held, Program
from floodline.scan._model import Change, FileFacts
from floodline.scan._proof import ASSUMED, PROVED, REFUTED, UNKNOWN, Proof, place
from floodline.scan._reach import LOOPS, REPEATS, STARTS, Reach

DEEP = 4
MAKERS = {"__init__", "__new__", "__post_init__", "__set_name__", "__setstate__"}
# words for things of which a program has a few: they prove nothing either way
FEW = re.compile(
    r"(^|_)(name|names|kind|type|types|typ|cls|klass|class|mode|level|category|method|format|lang|"
    r"locale|encoding|dtype|model|provider|backend|status|state|op|func|fn|function|callback|"
    r"handler|listener|plugin|config|settings|option|options|flag|feature|field|column|attr|"
    r"attribute|schema|scheme|ext|extension|module|package|driver|dialect|engine|device|alias|"
    r"prefix|suffix|stage|phase|role|severity|metric|label|labels|tag|unit|version|platform|value|group|reason|code|"
    r"action|event|index|size|path|file|filename|dir|folder|domain|host|hostname|port|lvl|depth)_?$"
)
# words for things that come without an end: ids, input, time, who is connected
MANY = re.compile(
    r"^key$|(^|_)(id|ids|uid|uuid|guid|token|hash|digest|session|sid|user|username|email|phone|"
    r"request|req|message|msg|text|query|prompt|question|input|body|payload|packet|frame|chunk|"
    r"client|conn|connection|peer|addr|address|ip|ws|websocket|sock|socket|stream|flow|job|task|"
    r"time|timestamp|ts|now|date|seq|sequence|number|offset|cursor|nonce|fingerprint|signature|"
    r"cookie|thread|chat|conversation|room|member|customer|order|ticket|invoice|jid|line|word)$"
)
# what a call returns is named after the call: only what must be one of many counts there
# ids of what somebody sets up: a program meets a few of them
FEW_IDS = re.compile(
    r"(^|_|\.)(server|client|app|application|function|func|channel|group|workspace|model|plugin|node|"
    r"worker|project|tenant|org|team|account|component|agent|tool|provider|device|shard|widget|"
    r"instance|process|thread|backend|engine|queue|topic|bucket|pool|cluster)(_|\.)?ids?(_str)?$"
)
MANY_MADE = re.compile(
    r"(^|_)(id|ids|uid|uuid|guid|token|sid|session|user|username|email|time|now)$"
)
CALLBACK = re.compile(
    r"(\b|_)(callback|cb|handler|listener|hook|func|fn|f|fun|function|observer|subscriber|filter|"
    r"middleware|loader|saver|view|plugin|route|decorated|wrapped|extension|provider|cls|klass)s?\b"
)
REGISTRATION = re.compile(
    r"(^|_)(register|subscribe|attach|mount|install|hook|declare|define)(_|$)|"
    r"^_?(add|set|append|on)_\w*(callback|handler|listener|hook|observer|filter|middleware|plugin|"
    r"route|rule|loader|processor|extension|provider)s?$"
)
WARNING = re.compile("warn|deprecat")  # said once for each place, and of those there are few
# verbs for what is done a few times in the life of a program
SELDOM_DONE = re.compile(
    r"^_*(start|initiali[sz]e|init|setup|set_up|opt|configure|prepare|build|load|launch|define|"
    r"declare|install|enable|include|import|compile|bootstrap|static|migrate|upgrade|use)(_|$)"
)
COMMAND_LINE = {"cli", "scripts", "commands", "__main__", "management"}
CLOSED_TYPES = {"bool", "Literal", "type", "Type", "None"}


class Paths:
    """Judges where a container grows."""

    def __init__(self, program: Program, reach: Reach) -> None:
        self._program = program
        self._reach = reach

    def path(self, held: Held, file: FileFacts, change: Change) -> Proof:
        """Say whether the function that grows a container runs again and again."""
        function = f"{file.module}:{change.function}"
        at = place(file.path, change.at.line)
        name = change.function.rpartition(".")[2] or "the module"
        if not change.function or change.function.endswith(":"):
            return Proof("grows while the module is loaded", REFUTED, at)
        if "once" in change.marks:
            return Proof("grows once, behind a flag", REFUTED, at)
        own = held.made[0].ref[:2] == "s:" and any(not m.function.endswith(":") for m in held.made)
        if (own or held.made[0].ref == "s:") and self._only_makes(function, 0):
            return Proof("grows while the instance is made", REFUTED, at)
        if change.marks & {"while"} and self._reach.often(function) != UNKNOWN:
            return Proof(f"grows in a loop of {name}()", PROVED, at)
        often = self._reach.often(function)
        if often == REPEATS and name in MAKERS and not self._program.callers.get(function):
            return Proof("grows with each new instance, if there are many", ASSUMED, at)
        if often == REPEATS and self._registers(function, name, change):
            return Proof(f"{name}() registers something; how often is not known", UNKNOWN, at)
        if often == REPEATS and change.key == "append" and self._is_seldom(function, name):
            return Proof(f"grows each time {name}() runs, which may be seldom", UNKNOWN, at)
        if often == REPEATS and COMMAND_LINE & set(file.module.split(".")):
            return Proof(f"{name}() belongs to a command line, which runs once", UNKNOWN, at)
        if often == REPEATS and function in self._reach.assumed:
            return Proof(f"grows if a call of one of several {name}() means this one", ASSUMED, at)
        if often == REPEATS:
            return Proof(f"grows each time {name}() runs", PROVED, at)
        if often == STARTS:
            return Proof(f"{name}() runs at start-up only", REFUTED, at)
        if self._reach.is_definition(function):
            return Proof(f"{name}() runs where things are defined", REFUTED, at)
        return Proof(f"grows in {name}(); how often that runs is not known", UNKNOWN, at)

    def _is_seldom(self, function: str, name: str) -> bool:
        """Whether by its name it runs a few times, and nobody is seen to run it in a loop."""
        callers = self._program.callers
        return bool(SELDOM_DONE.match(name)) and not any(
            self._reach.is_passed(item) or any(e.repeats in LOOPS for e in callers.get(item, ()))
            for item in self._reach.ancestors(function)
        )

    def _registers(self, function: str, name: str, change: Change) -> bool:
        """Whether what is added is a function to be called later: a handler, a hook, a route."""
        found = self._program.names.functions.get(function)
        inner = "<locals>" in function
        first = found.parameters[:1] if found and inner else ()
        return bool(
            REGISTRATION.search(name)
            or (inner and name.lstrip("_").startswith(("deco", "register")))
            or (change.key == "append" and CALLBACK.search(change.key_text))
            or (change.key == "append" and name.lstrip("_").startswith("ensure"))
            or any(CALLBACK.search(parameter) for parameter in first)
        )

    def _only_makes(self, function: str, depth: int) -> bool:
        found = self._program.names.functions.get(function)
        if found is None or depth > DEEP:
            return False
        if found.name.rpartition(".")[2] in MAKERS:
            return True
        callers = {e.caller for e in self._program.callers.get(function, ())} - {function}
        private = found.name.rpartition(".")[2].startswith("_")
        return private and bool(callers) and all(self._only_makes(c, depth + 1) for c in callers)

    def key(self, file: FileFacts, change: Change) -> Proof:
        """Say whether the keys that are put in have no end."""
        at = place(file.path, change.at.line)
        if change.key == "append":
            return Proof("every call adds one more", PROVED, at)
        state, why = self.origin(file.module, change.function, change.key)
        few = (
            FEW.search(change.key_text)
            or FEW_IDS.search(change.key_text)
            or WARNING.search(change.function)
        )
        if state == PROVED and why.startswith("comes from") and few:
            state = UNKNOWN
        return Proof(f"key {change.key_text or 'of the look-up'}: {why}", state, at)

    def origin(self, module: str, function: str, origin: str, depth: int = 0) -> tuple[str, str]:
        """Say whether values of an origin have no end, and why."""
        kind, _, detail = origin.partition(":")
        if kind in ("const", "type"):
            return REFUTED, "a constant" if kind == "const" else "a type"
        if kind == "fresh" and detail in ("id()", "hash()"):
            return UNKNOWN, f"as many as there are things ({detail})"
        if kind == "fresh":
            return PROVED, f"a new value each time ({detail})"
        if kind == "param":
            return self._parameter(module, function, detail, depth)
        if kind in ("attr", "call"):
            return self._word(detail, certain=kind == "attr")
        if kind == "enum":
            return self._dotted(module, detail)
        if kind == "self":
            return self._counted(f"{module}:s:{detail}", detail)
        if kind == "global":
            if self._is_definition(module, detail):
                return REFUTED, f"{detail} is one fixed thing"
            return self._counted(f"{module}:g:{detail}", detail)
        return UNKNOWN, "where it comes from is not known"

    def _is_definition(self, module: str, name: str) -> bool:
        key = self._program.names.resolve(module, name)
        names = self._program.names
        return key in names.classes or key in names.functions or name.isupper()

    def _counted(self, counter: str, name: str) -> tuple[str, str]:
        if counter in self._program.counters:
            return PROVED, f"{name} counts up"
        return (REFUTED, f"{name} is a constant") if name.isupper() else self._word(name)

    def _word(self, name: str, *, certain: bool = False) -> tuple[str, str]:
        if name.isupper() and certain:
            return REFUTED, f"{name} is a constant"
        many = (MANY if certain else MANY_MADE).search(name) and not FEW_IDS.search(name)
        return (PROVED if many else UNKNOWN), f"comes from {name}"

    def _dotted(self, module: str, text: str) -> tuple[str, str]:
        base, _, attribute = text.partition(".")
        key = self._program.names.resolve(module, base)
        if attribute.isupper() or key in self._program.names.classes:
            return REFUTED, f"{text} is a constant"
        return self._word(attribute)

    def _parameter(self, module: str, function: str, detail: str, depth: int) -> tuple[str, str]:
        number, _, attribute = detail.partition(".")
        found = self._program.names.functions.get(f"{module}:{function}")
        if found is None or depth > DEEP or int(number) >= len(found.parameters):
            return UNKNOWN, "a parameter"
        name = found.parameters[int(number)]
        annotation = found.annotations[int(number)] if found.annotations else ""
        if self._is_closed(module, annotation):
            return REFUTED, f"{name} is one of a fixed set ({annotation})"
        if attribute:
            return self._word(attribute, certain=True)
        edges = self._program.callers.get(f"{module}:{function}", ())
        answers = [self._at_call(e, int(number), name, depth) for e in edges if not e.guessed]
        for wanted in (PROVED, UNKNOWN, REFUTED):
            for state, why in answers:
                if state == wanted:
                    return state, why
        method = found.name.rpartition(".")[2]
        dunder = method.startswith("__") and method != "__missing__"
        if name.endswith("key") and (name != "key" or dunder):
            return UNKNOWN, f"comes from {name}"  # how a thing is asked for, not how many there are
        return self._word(name, certain=True)

    def _is_closed(self, module: str, annotation: str) -> bool:
        if annotation in CLOSED_TYPES:
            return True
        key = self._program.names.class_of(module, annotation) if annotation else ""
        if not key:
            return False
        names = self._program.names
        return any("Enum" in b for k in names.order(key) for b in names.classes[k].bases)

    def _at_call(self, edge: Edge, number: int, name: str, depth: int) -> tuple[str, str]:
        index = number - edge.shift
        given = ""
        if 0 <= index < len(edge.call.arguments):
            given = edge.call.arguments[index]
        for keyword in edge.call.keywords:
            if keyword.startswith(f"{name}="):
                given = keyword.partition("=")[2]
        if not given:
            return REFUTED, f"{name} has its default"
        origin = given.rpartition("=")[2] if given[:2] == "r:" else given
        if origin[:2] == "f:":
            return UNKNOWN, "a function"
        caller_module, _, caller = edge.caller.partition(":")
        return self.origin(caller_module, caller, origin, depth + 1)
