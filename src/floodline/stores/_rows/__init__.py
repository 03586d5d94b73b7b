"""Rows beside a session: the log, its plan, and the calls of a store for it."""
