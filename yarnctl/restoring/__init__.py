"""Lower a setting of another owner for a while, and restore it, whichever process ends and whenever.

Five kinds of settings are one thing here (:class:`yarnctl.deciding.model.Change`): the maximum of a queue,
the priority of an application, the bounds of a Flink job, the number of a Spark application's executors, and
whether YARN's own preemption leaves a queue alone.
"""
