"""A reducer that writes a side file for every key into its attempt's work folder in HDFS, if SIDES is set.

NAME_NODE is ``http://host:port``. This is what Hadoop documents as task side-effect files: they are committed
with the attempt's output.
"""

import itertools
import os
import sys
import urllib.error
import urllib.parse
import urllib.request


class Stay(urllib.request.HTTPRedirectHandler):
    """Does not follow: the NameNode says where the body goes."""

    def redirect_request(self, *_):
        return None


def put(path: str, data: bytes) -> None:
    asked = urllib.parse.urlencode(
        {"op": "CREATE", "user.name": os.environ["USER_NAME"], "overwrite": "true"}
    )
    opener = urllib.request.build_opener(Stay)
    try:
        opener.open(
            urllib.request.Request(f"{os.environ['NAME_NODE']}/webhdfs/v1{path}?{asked}", method="PUT")
        )
    except urllib.error.HTTPError as answer:
        where = answer.headers["Location"]
    urllib.request.urlopen(urllib.request.Request(where, data=data, method="PUT")).close()


work = urllib.parse.urlsplit(os.environ["mapreduce_task_output_dir"]).path  # noqa: SIM112 - Hadoop's name
for key, group in itertools.groupby(sys.stdin, key=lambda line: line.rstrip("\n").partition("\t")[0]):
    lines = "".join(group)
    if os.environ.get("SIDES"):
        put(f"{work}/side-{key}", lines.encode())
    print(key, lines.count("\n"), sep="\t", flush=True)
