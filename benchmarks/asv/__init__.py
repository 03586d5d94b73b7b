"""Thin benchmarks that asv can follow over time; the peers are in `benchmarks/bench_*.py`."""
