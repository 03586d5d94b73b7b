"""The rules, by family: each turns proofs into findings."""
