"""Reducer of the demo: how often a word occurs and in how many documents. It knows nothing of yarnctl.

``PAUSE_S`` seconds for each word stand for real work.
"""

import itertools
import os
import sys
import time

pause_s = float(os.environ.get("PAUSE_S", "0"))
pairs = (line.rstrip("\n").split("\t") for line in sys.stdin)
for word, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
    documents = [document for _, document in group]
    time.sleep(pause_s)
    sys.stdout.write(f"{word}\t{len(documents)}\t{len(set(documents))}\n")
    sys.stdout.flush()
