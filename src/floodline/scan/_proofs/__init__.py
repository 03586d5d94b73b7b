"""The four proofs: who holds it, does it grow, are the keys open, does anything remove."""
