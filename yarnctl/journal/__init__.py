"""The journal: written before the action, explained by one command, replayed to the same bytes."""
