"""Mapper of the demo: one line for each word of a document, ``word TAB document``."""

import sys

for line in sys.stdin:
    document, _, text = line.rstrip("\n").partition("\t")
    for word in text.split():
        sys.stdout.write(f"{word}\t{document}\n")
