"""Edits that make an intended removal run."""
