"""Files in, facts out: finding files, reading them, remembering what they say."""
