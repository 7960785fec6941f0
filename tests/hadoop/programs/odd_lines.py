"""A reducer that writes odd counter lines to its standard error, all of them for every key group.

``odd_lines.json`` lies beside it (``-files``). Strings are bytes in Latin-1; ``times`` and ``of`` repeat,
``pause`` lets what was written be read before the rest comes. The key goes to standard output.
"""

import itertools
import json
import os
import sys
import time

PAUSE_S = 0.05


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(2, view) :]


with open("odd_lines.json", encoding="utf-8") as file:
    lines = json.load(file)
for key, _ in itertools.groupby(sys.stdin, key=lambda line: line.rstrip("\n").partition("\t")[0]):
    for line in lines:
        for item in line["write"]:
            if isinstance(item, str):
                write(item.encode("latin-1"))
            elif "of" in item:
                write(item["of"].encode("latin-1") * item["times"])
            else:
                time.sleep(PAUSE_S)
    print(key, flush=True)
