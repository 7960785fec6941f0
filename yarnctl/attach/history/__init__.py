"""What finished jobs teach: records for admission, estimates for the next run of a job.

Law: it asks the history server only and reads nothing of what runs; a job that cannot be read is skipped
with a count, never filled in. No order depends on it. The contract "attach: what writes stands above what
reads" checks that it imports neither observing/ nor orders/.
"""
