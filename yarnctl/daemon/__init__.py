"""The daemon: its loop, and the state that it publishes."""
