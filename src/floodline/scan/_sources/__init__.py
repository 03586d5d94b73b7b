"""Files in, facts out: finding files, reading them, caching what they say."""
