"""Watching a running server in slices of about a millisecond."""
