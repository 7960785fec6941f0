"""Benchmarks: both sides of every ratio in one run; ``python -m yarn_research.bench``."""
