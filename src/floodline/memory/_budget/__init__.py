"""A line for the memory of the process, and who gives memory back beyond it."""
