"""How a running process is entered: the probe is woken, or put in."""
