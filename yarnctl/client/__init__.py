"""A small typed client of the daemon's API; answers are structs of :mod:`yarnctl.api`."""
