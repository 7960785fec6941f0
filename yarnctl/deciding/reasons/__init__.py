"""Reasons: why something was decided, moved or left alone, as values.

A union lists which reasons a field may have. A new reason is a class with its sentence, and an entry in a
union; run ``python -m tests.architecture.reasons_page --write`` to add it to docs/reference/reasons.md.
"""
