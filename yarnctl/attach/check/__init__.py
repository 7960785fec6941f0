"""`yarnctl check`: the rules that a cluster must satisfy, one pure function each, from facts to a finding.

A fact that could not be read gives a finding, never a pass. The only change made here is the creation of
yarnctl's own folders in HDFS (`hdfs_rules`).
"""
