"""Side files: an attempt whose work folder holds what its own output does not explain is never suspended."""

from __future__ import annotations

import json

import pytest

from tests.runner.namenode import Server
from tests.runner.running import Job, grouped, python
from yarnctl.frameworks.mapreduce.status_line import parse
from yarnctl.task_runner.runner.protocol.job_conf import Conf
from yarnctl.task_runner.runner.protocol.stores import LocalStore, Unusable
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore
from yarnctl.task_runner.runner.saving import WorkFolder

DATA = grouped(40, 3)
WRITING = """
import os, sys
folder = os.environ["mapreduce_task_output_dir"]
for line in sys.stdin:
    key = line.split("\\t")[0]
    if key >= "{first}":
        open(os.path.join(folder, "side-" + key), "a").write(line)
    sys.stdout.write(line)
"""
LATE = """
import os, sys
for line in sys.stdin:
    sys.stdout.write(line)
open(os.path.join(os.environ["mapreduce_task_output_dir"], "late"), "w")
"""
PACKED = {"mapreduce_output_fileoutputformat_compress": "true"}
HADOOP = "hdfs://nn:8020/user/a/out/_temporary/1/_temporary/attempt_1_0001_r_000000_0"


def sides(job: Job, attempt: int) -> list[str]:
    return sorted(path.name for path in job.work(attempt).iterdir())


def test_an_attempt_with_side_files_is_refused_and_says_why(tmp_path):
    job = Job(tmp_path)
    program = python(WRITING.format(first="key00000"))
    status, output = job.run(DATA, program, "--suspend-at", "20,30", "--release-wait-ms", "0")
    assert (status, output) == (0, DATA)
    assert not job.manifests()
    assert len(sides(job, 0)) == 41
    log = job.stderr.decode()
    assert "ckpt=refused gen=0 order=cut-20 " in log  # at once, or (a slow reducer) before the manifest
    assert "side files would be lost: side-key00000" in log
    last = parse([line for line in log.splitlines() if "phase=end" in line][-1].partition("status:")[2])
    assert last is not None
    assert last.can == 0
    assert last.why.startswith(
        "side files would be lost: side-key00000, side-key00001, side-key00002, ... in "
    )
    answer = json.loads(job.path("answer-cut-20-attempt_1_0001_r_000000_0.json").read_text())
    assert answer["answer"] == "refused"
    assert "side files" in answer["reason"]


def test_side_files_after_a_checkpoint_are_made_again_or_kept(tmp_path):
    job = Job(tmp_path)
    program = python(WRITING.format(first="key00030"))
    job.run(DATA, program, "--suspend-at", "20", "--exit-when-saved")
    assert sides(job, 0) == ["part-00000"]
    status, output = job.run(DATA, program, "--suspend-at", "35", "--release-wait-ms", "0")
    assert (status, output) == (0, DATA)
    assert len(job.manifests()) == 1
    assert len(sides(job, 1)) == 11


def test_a_side_file_that_comes_with_the_last_group_is_seen_before_the_manifest(tmp_path):
    job = Job(tmp_path)
    status, output = job.run(DATA, python(LATE), "--suspend-at", "20", "--release-wait-ms", "0")
    assert (status, output) == (0, DATA)
    assert not job.manifests()
    assert b"order=cut-20 not saved: side files would be lost: late in " in job.stderr


@pytest.mark.parametrize(
    ("conf", "names", "why"),
    [({}, ["part-00003"], ""), ({}, ["part-00003", ".part-00003.crc"], ""),
     ({}, ["part-00003.gz"], "would be lost: part-00003.gz"),
     ({}, ["part-00004"], "would be lost: part-00004"), ({}, ["part-r-00003"], "would be lost"),
     ({}, [], "is missing"), ({}, ["part-00003", "side"], "would be lost: side in"),
     ({}, ["part-00003", "folder/"], "would be lost: folder in"),
     ({}, ["part-00003", ".hidden"], "would be lost: .hidden in"),
     ({}, ["part-00003", "part-00003._COPYING_"], "would be lost: part-00003._COPYING_"),
     (PACKED, ["part-00003.gz"], ""), (PACKED, ["part-00003"], ""),
     (PACKED, ["part-00003", "part-00003.gz"], "would be lost"),
     (PACKED, ["part-00003-x.gz"], "would be lost"),
     ({"mapreduce_task_partition": ""}, ["part-00003"], "would be lost")],
)  # fmt: skip
def test_only_the_job_s_own_part_is_explained(tmp_path, conf, names, why):
    for name in names:
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).touch()
    folder = {"mapreduce_task_output_dir": f"file:{tmp_path}", "mapreduce_task_partition": "3"}
    assert_says(WorkFolder(Conf({**folder, **conf}), LocalStore("/nowhere")), why)


def assert_says(folder: WorkFolder, why: str) -> None:
    try:
        said = folder.why_not()
    except Unusable as error:
        said = str(error)
    assert why in said if why else not said, said


@pytest.mark.parametrize(
    "url", ["", "s3a://bucket/out", "viewfs://c/out", "hdfs://nn:8020/out", "out", "hdfs://nn"]
)
def test_a_folder_that_cannot_be_looked_at_forbids_suspension(tmp_path, url):
    folder = WorkFolder(Conf({"mapreduce_task_output_dir": url}), LocalStore(str(tmp_path)))
    with pytest.raises(Unusable, match="cannot be listed"):
        folder.why_not()


def test_in_hdfs_it_is_looked_at_where_the_checkpoints_are():
    conf = Conf({"mapreduce_task_output_dir": HADOOP, "mapreduce_task_partition": "0"})
    server, path = Server(), HADOOP.partition(":8020")[2]
    store = WebHdfsStore([server.host], "/yarnctl/checkpoints", "alice")
    folder = WorkFolder(conf, store)
    assert "is missing" in folder.why_not()
    server.held.put(f"{path}/part-00000", b"")
    assert not folder.why_not()
    server.held.put(f"{path}/side", b"")
    with pytest.raises(Unusable, match=r"would be lost: side in hdfs://nn:8020/user/a/out"):
        folder.why_not()
    server.held.instead = []
    assert "cannot be listed" in folder.why_not()
    assert store.root == "/yarnctl/checkpoints"
    server.shutdown()
    server.server_close()
