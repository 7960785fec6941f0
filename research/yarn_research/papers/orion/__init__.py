"""ORiON's figures: predicted times and bounds, and placement.

Law: the rule of a claim is written before the run (research/notes/paper.md, section ORiON).
"""
