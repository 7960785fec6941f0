"""Admission control with deadlines: who may start, when, and with how few containers."""
