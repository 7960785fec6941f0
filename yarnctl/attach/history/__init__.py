"""Records of finished jobs: feedback for admission, estimates for the next run of a job.

Law: it reads ended jobs only. A job that cannot be read is skipped with a count, never guessed. No order
depends on it. The contract "attach: what writes stands above what reads" checks that it imports neither
observing/ nor orders/.
"""
