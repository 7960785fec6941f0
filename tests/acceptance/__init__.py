"""Acceptance as data: what was asked for, the command that shows it, and what it shows."""
