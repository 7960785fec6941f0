"""The published state of the daemon: one immutable value per tick, which request threads read."""
