"""Applications of Spark: executors run the tasks of stages, leave when asked, and come back."""
