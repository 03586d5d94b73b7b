"""Repairs what an exception left behind, and judges whether a use may still be left."""
