"""The tests' reducer: KEY_S seconds of work for every key group, then one line. It knows nothing of yarnctl.

WORK says which: ``sleep`` (else), ``compute`` (KEY_S of processor time), or ``write`` (the group is written
eight times to a file on the node's disk, which is synchronised each time; it takes what it takes) and
``write-more`` (the same 64 times). HOLD_MIB of memory are held from its begin to its end.
Every group that is begun is noted in GROUP_LOG (a folder that all nodes of the test see): this is how
work that was done twice is counted, whoever caused it. As soon as GROUP_LOG.hurry is there a group takes a
hundredth of the time: who has seen enough need not wait for the rest.
"""

import hashlib
import itertools
import os
import sys
import time

BLOCK = bytes(1 << 16)
TIMES = {"write": 8, "write-more": 64}


def compute(values: list[str]) -> None:
    """Compute for KEY_S of processor time."""
    ends_s = time.process_time() + key_s
    while time.process_time() < ends_s:
        hashlib.sha256(BLOCK).digest()


def write(values: list[str]) -> None:
    """Write the group to the node's disk."""
    held = "\n".join(values).encode()
    with open("group.bin", "wb") as file:
        for _ in range(TIMES[kind]):
            file.seek(0)
            file.write(held)
            file.flush()
            os.fsync(file.fileno())


key_s = float(os.environ["KEY_S"])
attempt = os.environ["mapreduce_task_attempt_id"]  # noqa: SIM112 - Hadoop spells it so
hurry = os.environ["GROUP_LOG"] + ".hurry"
kind = os.environ.get("WORK", "")
works = {"compute": compute, **dict.fromkeys(TIMES, write)}
work = works.get(kind, lambda values: time.sleep(key_s))
ballast = b"\1" * (int(os.environ.get("HOLD_MIB", "0")) << 20)  # written, so that it counts as used
lines = (line.rstrip("\n").partition("\t") for line in sys.stdin)
with open(os.path.join(os.environ["GROUP_LOG"], attempt), "a", encoding="ascii") as log:
    for key, group in itertools.groupby(lines, key=lambda parts: parts[0]):
        log.write(f"{key} {time.time():.3f}\n")
        log.flush()
        values = sorted(value for _, _, value in group)
        if os.path.exists(hurry):
            time.sleep(key_s / 100)
        else:
            work(values)
        sys.stdout.write(f"{key}\t{len(values)}\t{values[0][:16]}\n")
        sys.stdout.flush()
