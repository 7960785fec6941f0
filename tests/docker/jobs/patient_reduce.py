"""As the sample's steps_reduce.py, but it takes its time until a file appears: patient_reduce.py URL.

URL is asked before every key: patient as long as it is not there (404). The counter "work: groups" gains
one for each key that is done, so what is done twice is seen in the job's counters.
"""

import itertools
import sys
import time
import urllib.error
import urllib.request

PAUSE_S = 1.5


def is_there(url):
    try:
        with urllib.request.urlopen(url, timeout=30):
            return True
    except urllib.error.HTTPError as error:
        return error.code != 404


hurried = len(sys.argv) < 2
pairs = (line.rstrip("\n").split("\t") for line in sys.stdin)
for steps, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
    numbers = [int(number) for _, number in group]
    hurried = hurried or is_there(sys.argv[1])
    if not hurried:
        time.sleep(PAUSE_S)
    print(f"{steps}\t{len(numbers)}\t{max(numbers)}", flush=True)
    print("reporter:counter:work,groups,1", file=sys.stderr, flush=True)
