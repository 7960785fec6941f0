"""Records of finished jobs: feedback for admission, estimates for the next run of a job.

It reads ended jobs only. A job that cannot be read is skipped with a count, never guessed.
"""
