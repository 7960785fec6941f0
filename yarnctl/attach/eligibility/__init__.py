"""What may be changed at all: whether a job's reduces may be suspended, and the one permission check.

Law: rules are pure functions of configurations that were read; what cannot be shown is not eligible, and
the reason is a value. Nothing here changes the cluster. The contract "attach: what writes stands above
what reads" checks that it imports neither observing/ nor orders/.
"""
