"""What others call and read of this product, frozen: names, JSON keys, journals, answers, outputs.

Law: a frozen file changes only together with a line of CHANGELOG.md that a user reads (see README.md here).
``python -m tests.frozen write`` writes the files again and prints what changed.
"""
