"""The tests; a package, so that ``python -m tests.soak`` finds these and no others."""
