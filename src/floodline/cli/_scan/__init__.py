"""`floodline scan`: its settings, the scan itself, what a run saw, and fixes."""
