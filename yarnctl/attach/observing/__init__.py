"""The current state of the cluster, by GET requests only. What was not seen is left out, never guessed."""
