"""Placement of applications that exist for several frameworks (ORiON): predicted times, and replays.

Law: all follows from the seed and the tables; nothing here is tuned on what it is judged by (research/notes/paper.md).
"""
