"""PlanService as its authors had it: only an explicit `clear_memory` frees a session."""

from __future__ import annotations

import threading


class MemoryService:
    """What a session remembers while its plan is worked on."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.notes: list[str] = []


class PlanService:
    """Creates plans, runs their steps and reviews them, for any number of sessions."""

    def __init__(self) -> None:
        self._memories: dict[str, MemoryService] = {}
        self._locks: dict[str, threading.Lock] = {}

    def get_memory_service(self, session_id: str) -> MemoryService:
        """Return the memory of a session; whoever asks first creates it."""
        if session_id not in self._memories:
            self._memories[session_id] = MemoryService(session_id)
            self._locks[session_id] = threading.Lock()
        return self._memories[session_id]

    def create_plan(self, session_id: str, goal: str) -> int:
        """Note the goal, and return how many notes the session has."""
        memory = self.get_memory_service(session_id)
        with self._locks[session_id]:
            memory.notes.append(f"goal: {goal}")
            return len(memory.notes)

    def run_step(self, session_id: str, step: str) -> int:
        """Run a step of the plan; a step that is empty fails, and so does its caller."""
        memory = self.get_memory_service(session_id)
        with self._locks[session_id]:
            memory.notes.append(f"step: {step}")
            if not step:
                raise ValueError("a step needs words")
            return len(memory.notes)

    def review(self, session_id: str) -> list[str]:
        """Return the notes of a session."""
        memory = self.get_memory_service(session_id)
        with self._locks[session_id]:
            return list(memory.notes)

    def clear_memory(self, session_id: str) -> None:
        """Forget a session; harmless if there is none."""
        self._memories.pop(session_id, None)
        self._locks.pop(session_id, None)

    def live(self) -> int:
        """Return how many sessions are in memory."""
        return len(self._memories)
