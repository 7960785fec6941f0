"""ORiON's figures: predicted times and bounds, and placement.

Law: the rule of a claim is written before the run (docs/paper.md, section ORiON).
"""
