"""One run in virtual time: the cluster behind yarnctl's port, a scheme, and what came of it.

Law: the same seed gives the same bytes; nothing reads a wall clock, and no actor is reached but through
the cluster. What differs from Hadoop for a paper's sake is a variant here, never a condition in cluster/.
The tests of determinism run each scheme twice and compare.
"""
