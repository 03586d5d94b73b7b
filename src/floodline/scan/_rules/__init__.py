"""The rules, found by their codes: one folder a family, one module for what a rule is about."""
