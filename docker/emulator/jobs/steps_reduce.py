"""How many numbers take so many steps, and the largest of them: reads and prints by key.

It keeps nothing from one key to the next, so it may be submitted with --restartable. The optional argument
makes it slow: milliseconds of pause for each key.
"""
# ruff: noqa: T201 - printing is what it is for

import itertools
import sys
import time

pause_ms = int(sys.argv[1]) if len(sys.argv) > 1 else 0
pairs = (line.rstrip("\n").split("\t") for line in sys.stdin)
for steps, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
    numbers = [int(number) for _, number in group]
    time.sleep(pause_ms / 1000)
    print(f"{steps}\t{len(numbers)}\t{max(numbers)}", flush=True)
