"""PlanService on floodline: abandoned sessions leave by themselves, `clear_memory` still works."""

from __future__ import annotations

from floodline import BoundedLog, Sessions


class MemoryService:
    """What a session remembers while its plan is worked on."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.notes: BoundedLog[str] = BoundedLog(200)


class PlanService:
    """Creates plans, runs their steps and reviews them, for any number of sessions."""

    def __init__(self) -> None:
        self._memories = Sessions(MemoryService, idle="30 min", max_sessions=50, name="plans")

    def create_plan(self, session_id: str, goal: str) -> int:
        """Note the goal, and return how many notes the session has."""
        with self._memories.use(session_id) as memory:
            memory.notes.append(f"goal: {goal}")
            return len(memory.notes)

    def run_step(self, session_id: str, step: str) -> int:
        """Run a step of the plan; a step that is empty fails, and so does its caller."""
        with self._memories.use(session_id) as memory:
            memory.notes.append(f"step: {step}")
            if not step:
                raise ValueError("a step needs words")
            return len(memory.notes)

    def review(self, session_id: str) -> list[str]:
        """Return the notes of a session."""
        with self._memories.use(session_id) as memory:
            return list(memory.notes)

    def clear_memory(self, session_id: str) -> None:
        """Forget a session; harmless if there is none."""
        self._memories.close(session_id)

    def live(self) -> int:
        """Return how many sessions are in memory."""
        return len(self._memories)
