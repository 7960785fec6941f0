"""MapReduce: command lines, master and history server; its tasks are suspended by the task runner."""
