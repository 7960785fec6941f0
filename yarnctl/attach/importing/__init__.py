"""Import of a week: the history of ended jobs, from the servers that keep it."""
