"""What a state means in words: phrases for everyone, and what to do next."""
