"""Records of finished jobs: feedback for admission, estimates for the next run of a job.

Law: it reads the history server only, nothing that runs; a job that cannot be read is skipped with a count,
never filled in. No order depends on it. The contract "attach: what writes stands above what reads" checks
that it imports neither observing/ nor orders/.
"""
