"""Flink: workers that leave when the bounds of a running job are lowered."""
