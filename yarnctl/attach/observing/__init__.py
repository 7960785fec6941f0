"""The current state of the cluster: one snapshot, the running reduces, the measured cost of suspensions.

Law: it sends GET requests only, and uses nothing of orders/. What was not seen is left out, never guessed.
The contract "attach: what writes stands above what reads" in pyproject.toml checks that it imports nothing of
orders/.
"""
