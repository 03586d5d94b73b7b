"""The facts of one source file: what the later stages know of it."""
