"""Who keeps an object alive, and what should be gone by now."""
