"""The bill of YARN's own preemption: which containers it ended, and the work that was lost with them.

Law: it reads only, and needs no daemon, no HDFS and no token. What no history explains is called
unattributed, never guessed.
"""
