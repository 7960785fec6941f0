"""A host that only wraps commands has click and nothing else of what yarnctl installs."""

from __future__ import annotations

import subprocess
import sys

BLOCKED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("msgspec", "requests", "hdfs", "pyarrow", "fastapi", "numpy", "rich"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
from yarnctl.cli import main
main()
"""
LINE = ["mapred", "streaming", "-D", "mapreduce.job.reduces=2", "-files", "m.py,r.py", "-input", "a"]
LINE += ["-output", "b", "-mapper", "python3 m.py", "-reducer", "python3 r.py"]


def test_wrap_needs_no_package_but_click() -> None:
    store = ["--store", "webhdfs://nn:9870/yarnctl/checkpoints"]
    words = [sys.executable, "-c", BLOCKED, "wrap", "--restartable", *store, "--", *LINE]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "yarnctl_task.py" in done.stdout
