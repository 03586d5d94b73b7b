"""The rules, found by their codes: one folder per family, one module per subject."""
