"""The tests' reducer: KEY_S seconds of work for every key group, then one line. It knows nothing of yarnctl.

Every group that is begun is noted in GROUP_LOG (a folder that all nodes of the test see): this is how
work that was done twice is counted, whoever caused it. As soon as GROUP_LOG.hurry is there a group takes a
hundredth of the time: who has seen enough need not wait for the rest.
"""

import itertools
import os
import sys
import time

key_s = float(os.environ["KEY_S"])
attempt = os.environ["mapreduce_task_attempt_id"]  # noqa: SIM112 - Hadoop spells it so
hurry = os.environ["GROUP_LOG"] + ".hurry"
lines = (line.rstrip("\n").partition("\t") for line in sys.stdin)
with open(os.path.join(os.environ["GROUP_LOG"], attempt), "a", encoding="ascii") as log:
    for key, group in itertools.groupby(lines, key=lambda parts: parts[0]):
        log.write(f"{key} {time.time():.3f}\n")
        log.flush()
        values = sorted(value for _, _, value in group)
        time.sleep(key_s / 100 if os.path.exists(hurry) else key_s)
        sys.stdout.write(f"{key}\t{len(values)}\t{values[0]}\n")
        sys.stdout.flush()
