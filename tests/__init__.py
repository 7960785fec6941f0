"""The tests; a package, so that ``python -m tests.acceptance`` finds these and no others."""
