"""What runs inside the watched process; standard library and the leak engine only."""
