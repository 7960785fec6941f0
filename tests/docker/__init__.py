"""Containers: the emulated cluster and yarnctl, each process in a container of its own."""
