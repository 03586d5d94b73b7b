"""What runs a function by itself, so that no event has to ask for it."""

from __future__ import annotations

from functools import cached_property

from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._program.program import Program
from floodline.scan._proofs.events import Events
from floodline.scan._proofs.growing import Growing
from floodline.scan._proofs.reach import ENDING, Often, Reach

# what runs a function at once, beside its caller, and only this time
BESIDE = {
    "Thread", "Process", "submit", "run_in_executor", "to_thread", "create_task", "ensure_future",
    "start_soon", "spawn",
}  # fmt: skip


class Runners:
    """Judges who runs what removes."""

    def __init__(self, program: Program, reach: Reach, events: Events) -> None:
        self._program = program
        self._reach = reach
        self._events = events

    def runs(self, function: str, growth: Growing, *, named: bool) -> bool:
        """Return True if something runs a function by itself; an end only if a timer brings it."""
        if self._reach.is_end(function):
            return self._reach.is_timed(function)
        alone = self._reach.runs_by_itself(function, named=named)
        return alone and not self._is_for_one_event(function, growth)

    def _is_for_one_event(self, function: str, growth: Growing) -> bool:
        """Return True if only events that grow nothing have a function run beside them."""
        passed = self._program.by_reference.get(function)
        edges = self._program.handed.get(function)
        if not passed or not edges or not passed <= BESIDE:
            return False
        return all(
            not edge.repeats
            and self._events.why(edge.caller)
            and self.passing >= self._reach.ancestors(edge.caller) & growth.by_function.keys()
            for edge in edges
        )

    @cached_property
    def passing(self) -> frozenset[str]:
        """What runs only at start-up, or while something is created or ended."""
        everything = {*self._program.names.functions, *self._program.edges_of}
        return frozenset(
            item
            for item in everything
            if item.endswith(":")
            or (last := item.rpartition(":")[2].rpartition(".")[2]) in MAKERS
            or last in ENDING
            or self._reach.often(item) is Often.STARTS
        )
