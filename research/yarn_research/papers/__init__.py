"""What each paper reports and claims, beside what the emulator gives.

Law: the rule by which a claim is judged is in research/notes/paper.md and was written before the run; a miss is
reported like a hit. What a paper leaves open is a named choice.
"""
