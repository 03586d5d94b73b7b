"""Looking into one object without running its code."""
