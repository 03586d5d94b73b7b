"""Inspects one object without running its code."""
