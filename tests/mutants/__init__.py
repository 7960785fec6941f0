"""Mutants: would the tests notice, if one thing in the code were otherwise?

``make mutants SEED=N [COUNT=300]`` draws mutants of a folder, runs on each the tests that execute its line,
and tells how many were noticed (``python -m tests.mutants --help``). Nothing is written into the sources.
"""
