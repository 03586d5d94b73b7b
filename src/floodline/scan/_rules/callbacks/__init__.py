"""FLD4xx: tasks, listeners, timers and other work that is registered and never ends."""
