"""Admission control with deadlines: which jobs may start, when, and with how few containers."""
