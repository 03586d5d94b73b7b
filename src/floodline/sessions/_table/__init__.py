"""The rules of sessions: a state machine with no I/O, no thread and no clock."""
