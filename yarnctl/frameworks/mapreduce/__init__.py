"""MapReduce: how its jobs are submitted."""
