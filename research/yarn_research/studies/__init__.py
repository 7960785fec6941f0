"""Studies: many recorded hours, each run under several schemes, judged by a rule that was written before.

Law: research/notes/levers.md, "How unseen hours are judged", says which hours are paired and what the figures are; a
change of either changes that page first. No pair and no seed is left out.
"""
