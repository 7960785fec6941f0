"""Workloads: readers, generators and the model that turn a SPEC into jobs."""
