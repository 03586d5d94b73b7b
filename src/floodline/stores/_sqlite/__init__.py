"""The store and the archive in a SQLite file."""
