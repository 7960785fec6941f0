"""`yarnctl check`: what a cluster must be like, one rule a function.

Law: a rule is pure: what was gathered in, findings out, each with what to do. What was not readable is a
finding, never a pass. The only change made here is creating our own folders in HDFS (`hdfs_rules`).
tests/unit/attach check each rule with a cluster that breaks it.
"""
