"""yarnctl: checkpoint preemption for an unmodified Hadoop 3, from outside."""
