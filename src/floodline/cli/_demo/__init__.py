"""`floodline demo`: two processes, and their curves."""
