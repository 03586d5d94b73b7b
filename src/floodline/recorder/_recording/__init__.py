"""The recording: one bounded SQLite file, written each tick and read back."""
