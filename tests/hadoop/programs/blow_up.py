"""The tests' mapper for much input: each value becomes BYTES long (the first argument)."""

import sys

size = int(sys.argv[1])
for line in sys.stdin:
    key, _, value = line.rstrip("\n").partition("\t")
    sys.stdout.write(f"{key}\t{(value + 'x' * size)[:size]}\n")
