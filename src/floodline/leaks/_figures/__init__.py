"""Measurements over time, and what they mean: series, trends, candidates, the verdict."""
