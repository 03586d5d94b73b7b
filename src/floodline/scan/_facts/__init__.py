"""The facts of one source file: what the later stages know about it."""
