"""The daemon: the loop that waits, and what it publishes."""
