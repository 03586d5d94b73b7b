"""FLD3xx: caches that keep what they were called with."""
