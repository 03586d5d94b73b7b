"""A closer look at the suspects: owner, contents, feeding line."""
