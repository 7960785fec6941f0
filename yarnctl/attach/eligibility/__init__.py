"""Eligibility of jobs, and the one permission check of actions.

Law: rules are pure functions of configurations that were read. A job without proof is not eligible, and the
reason is a value. Nothing here changes the cluster. The contract "attach: what writes stands above
what reads" checks that it imports neither observing/ nor orders/.
"""
