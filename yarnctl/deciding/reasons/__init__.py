"""Reasons: why something was decided, moved or left alone, as values.

Law: nothing here makes or reads English (``journal/rendering`` makes it), and nothing here touches a clock, a
file or chance. A union lists which reasons a field may have; a new reason is a class, its entry in a union,
its sentence in the rendering, and its row in docs/design-notes.md (a test compares the four).
"""
