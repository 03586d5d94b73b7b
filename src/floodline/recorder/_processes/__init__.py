"""The processes of a run: starting them, following them, and how they ended."""
