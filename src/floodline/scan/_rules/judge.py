"""Puts the four proofs of each container together, and chooses the rule that says most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from floodline.scan._facts.model import Change, FileFacts, Pair
from floodline.scan._facts.vocabulary import LOCKS
from floodline.scan._findings.confidence import certain, is_vague
from floodline.scan._findings.finding import HIGH, LOW, MEDIUM, Finding, make
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.events import in_a_loop
from floodline.scan._proofs.growth import COMMAND_LINE, Paths
from floodline.scan._proofs.holders import Holders
from floodline.scan._proofs.proof import ASSUMED, PROVED, REFUTED, UNKNOWN, Proof, place
from floodline.scan._proofs.reach import Reach
from floodline.scan._proofs.removal import (
    END,
    EVENT,
    LAZY,
    NEVER,
    NONE,
    PUBLIC,
    RUNS,
    Removal,
    Removals,
    Way,
)

Grown = tuple[FileFacts, Change, Proof, Proof]
STATES = [PROVED, ASSUMED, UNKNOWN, REFUTED]
BOUNDS = {"cap", "ttl"}
BY_VALUE = {"task": "FLD401", "future": "FLD402", "lock": "FLD106", "weakref": "FLD111"}


class Judge:
    """Judges every container of a program."""

    def __init__(self, program: Program, *, library: bool = False) -> None:
        self._program = program
        self._library = library
        self.reach = Reach(program, library=library)
        self.holders = Holders(program, self.reach, library=library)
        self.paths = Paths(program, self.reach)
        self.removals = Removals(program, self.reach, library=library)
        self._decorating = {  # inner functions that return what they are given
            f"{file.module}:{mark.function}"
            for file in program.files
            for mark in file.marks
            if mark.kind == "gives"
        }
        self._families: dict[str, list[Held]] = defaultdict(list)
        for held in program.held.values():
            if held.made[0].ref[:2] == "s:":
                self._families[held.key.rpartition(".")[0]].append(held)

    def findings(self) -> Iterator[Finding]:
        """Yield what was found, in no order."""
        for held in self._program.held.values():
            if held.changes:
                yield from self._container(held)

    def _container(self, held: Held) -> Iterator[Finding]:
        kinds = {made.kind for made in held.made}
        if kinds & {"bounded", "weak"}:
            return
        holder = self.holders.proof(held)
        if holder.state == REFUTED:
            return  # most containers: no need to ask the other three
        found = self._unbounded(held, holder, kinds)
        if found is None and "lookup" in kinds:
            found = self._looked_up(held, holder)
        if found is None:
            found = self._paired(held, holder)
        if found:
            yield found

    def growth(self, held: Held, kinds: set[str]) -> list[Grown]:
        """Return where a container grows, the best proved first."""
        verbs = {"grow", "insert", "lookup"} if "lookup" in kinds else {"grow"}
        found: list[Grown] = []
        for file, change in held.changes:
            if change.verb not in verbs or "limit" in change.marks:
                continue
            if change.depth and kinds == {"set"}:
                continue
            if kinds == {"list"} and change.op == "[]=" and not change.depth:
                continue  # an item of a list is replaced
            path, key = self.paths.path(held, file, change), self.paths.key(file, change)
            found.append((file, change, path, key))
        found.sort(key=lambda g: (_worst(g[2], g[3]), g[1].verb == "lookup", g[1].depth))
        return found

    def _unbounded(self, held: Held, holder: Proof, kinds: set[str]) -> Finding | None:
        grown = [g for g in self.growth(held, kinds) if g[1].verb != "lookup"]
        removals: dict[int, Removal] = {}  # by depth: one container may grow in many places
        for file, change, path, key in grown:
            if path.state == REFUTED:
                continue
            growing = [(f, c) for f, c, _, _ in grown if c.depth <= change.depth]
            removal = removals.get(change.depth) or self.removals.judge(held, change.depth, growing)
            removals[change.depth] = removal
            removal = certain(key, removal)
            proofs = (holder, path, key, removal.proof)
            confidence = confidence_of(proofs, removal)
            if confidence:
                rule = self._rule(held, change, removal, kinds)
                if confidence == HIGH and _is_doubtful(rule, removal):
                    confidence = MEDIUM
                if confidence == MEDIUM and self._is_vague(file, change, rule, *proofs[:3]):
                    confidence = LOW
                proofs = (*proofs[:3], _told(held, rule, removal.proof))
                beside = self._beside(held, growing) if rule == "FLD101" else None
                if beside:
                    told = f"{removal.proof.claim}, and what stands beside it is bounded"
                    rule, proofs = (
                        "FLD205",
                        (*proofs[:3], Proof(told, removal.proof.state, beside.at)),
                    )
                return make(
                    self._program, held, rule, file, change.at, confidence, proofs,
                    [(f.path, c.at.line) for f, c in growing], removal.ways,
                    risk_line=beside.line if beside else 0,
                )  # fmt: skip
        return None

    def trusts(self) -> bool:
        """Whether much is taken on trust: a program that shows its events says more."""
        return self._library or not self.paths.events.shown

    def is_seen(self, function: str) -> bool:
        """Whether a function is seen to run for events, or that is taken on trust."""
        return self.trusts() or bool(self.paths.events.why(function))

    def _is_vague(
        self, file: FileFacts, change: Change, rule: str, holder: Proof, path: Proof, key: Proof
    ) -> bool:
        if self.trusts():
            return False
        if path.state != PROVED and f"{file.module}:{change.function}" in self._decorating:
            return True
        if COMMAND_LINE & set(file.module.split(".")) and not in_a_loop(change):
            path = path._replace(state=UNKNOWN)  # a command is an event that comes once
        unseen = rule == "FLD108" and path.state != PROVED  # who has the closure runs it, or not
        return unseen or is_vague(change, holder, path, key)

    def _beside(self, held: Held, grown: list[tuple[FileFacts, Change]]) -> Way | None:
        """Return what bounds another container of the owner that grows with the same key."""
        places = {
            (f.module, c.function, c.key_text) for f, c in grown if c.key_text and not c.depth
        }
        for other in self._families[held.key.rpartition(".")[0]] if places else ():
            growing = [
                (f, c)
                for f, c in other.changes
                if c.verb == "grow" and (f.module, c.function, c.key_text) in places
            ]
            if growing and other is not held:
                ways = self.removals.judge(other, 0, growing).ways
                found = next((way for way in ways if way.when == RUNS and way.how in BOUNDS), None)
                if found:
                    return found
        return None

    def _rule(self, held: Held, change: Change, removal: Removal, kinds: set[str]) -> str:
        if removal.when in (EVENT, END):
            return "FLD102"
        if removal.when == NEVER:
            return "FLD103"
        if removal.when == LAZY:
            return "FLD203"
        maker = change.function.rpartition(".")[2] in ("__init__", "__post_init__", "__new__")
        if maker and (change.value == "self" or change.key == "fresh:self"):
            return "FLD110"
        if change.value in BY_VALUE and not (change.value == "weakref" and "map" in kinds):
            return BY_VALUE[change.value]
        if kinds == {"stack"}:
            return "FLD206"
        inner = f"{held.made[0].function}.<locals>."
        if held.made[0].ref[:2] == "l:" and change.function.startswith(inner):
            return "FLD108"
        if any(not limit.acts for _, limit in held.limits):
            return "FLD201"
        if any(mark.kind == "ttl" for _, mark in held.signs):
            return "FLD203"
        grows = {c.function for _, c in held.changes if c.verb == "grow" and not c.depth}
        flips = [m for _, m in held.signs if m.kind == "flip" and m.function not in grows]
        if flips and kinds & {"map", "lookup"}:
            return "FLD204"
        if held.slices and kinds == {"list"}:
            return "FLD202"
        if "set" in kinds and "absent" in change.marks:
            return "FLD107"
        return "FLD101"

    def explain(self, held: Held) -> Iterator[str]:
        """Say in lines what is known about a container: why it is reported, or why not."""
        kinds = {made.kind for made in held.made}
        if kinds & {"bounded", "weak"}:
            yield "cannot grow: it is bounded or weak where it is made"
            return
        holder = self.holders.proof(held)
        yield f"{holder.state}: {holder.claim} ({holder.at})"
        grown = self.growth(held, kinds)
        if not grown:
            yield "refuted: nothing was found that makes it grow"
            return
        _, change, path, key = grown[0]
        removal = self.removals.judge(held, change.depth, [(f, c) for f, c, _, _ in grown])
        for proof in (path, key, removal.proof):
            yield f"{proof.state}: {proof.claim} ({proof.at})"
        found = next(self._container(held), None)
        yield f"reported as {found.rule}, {found.confidence}" if found else "not reported"

    def _looked_up(self, held: Held, holder: Proof) -> Finding | None:
        """A `defaultdict` whose entry comes back when a reader asks for it."""
        grows = {c.function for _, c in held.changes if c.verb == "grow"}
        drops = {c.function for _, c in held.changes if c.verb == "shrink" and not c.depth}
        for file, change, path, key in self.growth(held, {"lookup"}):
            if change.verb != "lookup" or change.function in grows | drops:
                continue
            if change.marks & {"absent", "except", "for"} or change.depth:
                continue
            at = place(file.path, change.at.line)
            told = "the look-up inserts the key, and nothing removes it there"
            proofs = (holder, path, key, Proof(told, PROVED, at))
            removal = Removal(NONE, proofs[3], ())
            growing = [(file, change)]
            best = self.removals.judge(held, 0, growing)
            if best.when == RUNS:
                continue
            confidence = confidence_of(proofs, removal)
            if self._is_vague(file, change, "", *proofs[:3]):
                continue
            if confidence in (HIGH, MEDIUM):
                rule = "FLD106" if any(m.fills in LOCKS for m in held.made) else "FLD105"
                return make(
                    self._program, held, rule, file, change.at, confidence, proofs,
                    [(file.path, change.at.line)], best.ways,
                )  # fmt: skip
        return None

    def _paired(self, held: Held, holder: Proof) -> Finding | None:
        for file, pair in held.pairs:
            if not self._only_way(held, pair):
                continue
            change = next(
                c for f, c in held.changes if f is file and c.at == pair.added and c.verb == "grow"
            )
            path, key = self.paths.path(held, file, change), self.paths.passing(file, change)
            # what leaves a function takes its locals along, unless it is caught in there
            local = held.made[0].ref[:2] == "l:" and held.made[0].function == pair.function
            risk = UNKNOWN if pair.risk == "call" or local else PROVED
            how = (
                f"by the {pair.risk}"
                if pair.risk in ("return", "raise")
                else f"if the {pair.risk} fails"
            )
            told = f"the removal in line {pair.removed_line} is skipped {how}"
            skipped = Proof(told, risk, place(file.path, pair.risk_line))
            proofs = (holder, path, key, skipped)
            confidence = confidence_of(proofs, Removal(RUNS, skipped, ()))
            if confidence in (HIGH, MEDIUM):
                return make(
                    self._program, held, "FLD109", file, change.at, confidence, proofs,
                    [(file.path, pair.added.line)], (), risk_line=pair.risk_line,
                    shrinks=[(file.path, pair.removed_line)],
                )  # fmt: skip
        return None

    def _only_way(self, held: Held, pair: Pair) -> bool:
        """Whether nothing else that runs would remove the entry: no limit, no sweeper."""
        if any(limit.acts for _, limit in held.limits):
            return False
        return self.removals.elsewhere(held, pair.depth, pair.function) not in (RUNS, PUBLIC)


def _is_doubtful(rule: str, removal: Removal) -> bool:
    """Whether more is known than four proofs say: how long a function lives is seldom seen."""
    return rule == "FLD108" or "start-up" in removal.proof.claim


def _told(held: Held, rule: str, proof: Proof) -> Proof:
    """Name the line that looks as if it kept the container small and does not."""
    kind = {"FLD203": "ttl", "FLD204": "flip"}.get(rule)
    if kind is None or proof.state != PROVED:
        return proof
    file, mark = next(sign for sign in held.signs if sign[1].kind == kind)
    says = "an age is asked for" if kind == "ttl" else f"an entry becomes {mark.detail}"
    return Proof(
        f"{proof.claim}: {says} and the entry stays", PROVED, place(file.path, mark.at.line)
    )


def _worst(*proofs: Proof) -> int:
    return max(STATES.index(proof.state) for proof in proofs)


def confidence_of(proofs: tuple[Proof, ...], removal: Removal) -> str:
    """High: all four proved. Medium: one is unknown, or the holder is assumed. Low: naive rule."""
    states = [proof.state for proof in proofs]
    if states[3] == REFUTED:
        return ""
    unknown = states.count(UNKNOWN)
    if REFUTED not in states and unknown <= 1:
        return HIGH if not unknown and ASSUMED not in states else MEDIUM
    naive = removal.when == NONE and REFUTED not in states[:2]
    return LOW if naive else ""
