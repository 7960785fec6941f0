"""A real, unmodified Hadoop 3 on loopback: started for the tests and by ``make hadoop-up``."""
