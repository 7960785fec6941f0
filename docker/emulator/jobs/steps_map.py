"""How many steps each number takes to 1 (halve what is even, else treble and add one).

Reads lines of "FROM TO"; prints "STEPS <tab> NUMBER".
"""
# ruff: noqa: T201 - printing is what it is for

import sys

for line in sys.stdin:
    first, last = map(int, line.split())
    for start in range(first, last + 1):
        number, steps = start, 0
        while number != 1:
            number = number // 2 if number % 2 == 0 else 3 * number + 1
            steps += 1
        print(f"{steps}\t{start}")
