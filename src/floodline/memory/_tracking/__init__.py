"""The memory of a program by stage: trackers, spans and their figures."""
