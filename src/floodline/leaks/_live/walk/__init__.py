"""The walk over the objects of a running program, in slices."""
