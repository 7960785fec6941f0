"""As the sample's steps_reduce.py, but it takes its time until a file appears: waiting_reduce.py FILE LOG.

LOG gains a line for every key that was worked on: what is done twice is seen.
"""

import itertools
import os
import sys
import time

HURRY, LOG = sys.argv[1:]
PAUSE_S = 1.5

log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
pairs = (line.rstrip("\n").split("\t") for line in sys.stdin)
for steps, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
    numbers = [int(number) for _, number in group]
    if not os.path.exists(HURRY):
        time.sleep(PAUSE_S)
    os.write(log, f"{steps}\n".encode())
    print(f"{steps}\t{len(numbers)}\t{max(numbers)}", flush=True)
