"""`yarnctl check`: what a cluster must be like, one rule a function.

Law: a rule is a pure function from the gathered facts to a finding, each with what to do. What was not
readable is a finding, never a pass. The only change made here is the creation of yarnctl's own folders in
HDFS (`hdfs_rules`). tests/unit/test_check.py checks each rule with a cluster that breaks it.
"""
