"""`floodline store`: its commands, and what they print."""
