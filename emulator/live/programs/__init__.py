"""Programs of the live roles: all in one process, or each in its own. What a program starts, it ends."""
