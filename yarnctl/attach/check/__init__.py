"""`yarnctl check`: the rules that a cluster must satisfy, one function each.

Law: a rule is a pure function from the gathered facts to a finding with a fix. A fact that could not be read
gives a finding, never a pass. The only change made here is the creation of yarnctl's own folders in
HDFS (`hdfs_rules`). tests/unit/test_check.py checks each rule with a cluster that breaks it.
"""
