"""What is read again and again: slots, types and the process, as figures over time."""
