"""A service that keeps a memory for every plan session, before and after."""
