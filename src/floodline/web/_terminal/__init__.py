"""The state in a terminal: what `floodline top` shows."""
