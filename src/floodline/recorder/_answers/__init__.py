"""What a run saw: one answer for all processes, and the words for it."""
