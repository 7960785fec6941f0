"""A week replayed: on the cluster's own nodes, queues and sizes, first as it was, then under yarnctl."""
