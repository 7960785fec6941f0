"""Files of each kind that ``history import`` meets, written by hand after the published formats.

``READ`` has what is in each file. ``REFUSED`` has bytes, and what the error says of them.
"""

# ruff: noqa: E501 (a file a line)

from __future__ import annotations

import json
from typing import NamedTuple


class Sample(NamedTuple):
    """One file that is read, and what is in it."""

    text: str
    jobs: int
    containers: int
    skipped: int = 0


T0 = 1_700_000_000_000
HISTORY = "org.apache.hadoop.mapreduce.jobhistory."
SUMMARY = "2026-11-23 10:06:56,714 INFO org.apache.hadoop.yarn.server.resourcemanager.RMAppManager$ApplicationSummary: "


def jhist(*events: tuple[str, str, dict[str, object]], magic: str = "Avro-Json") -> str:
    """Return a history file: the kind of each event, its class and its fields."""
    lines = [json.dumps({"type": kind, "event": {HISTORY + name: fields}}) for kind, name, fields in events]
    return "\n".join([magic, json.dumps({"type": "record", "name": "Event"}), *lines, ""])


def submitted(job: str, *, wraps: bool = False) -> tuple[str, str, dict[str, object]]:
    queue: object = {"string": "etl"} if wraps else "etl"
    fields = {
        "jobid": job, "jobName": "daily", "userName": "alice", "submitTime": T0, "jobConfPath": "hdfs://x/job.xml",
        "acls": {}, "jobQueueName": queue, "workflowId": {"string": ""} if wraps else "",
    }  # fmt: skip
    return "JOB_SUBMITTED", "JobSubmitted", fields


def attempt(task: str, number: int, began_s: int, ended_s: int, how: str = "FINISHED", **more: object):
    """Yield the two events of an attempt."""
    side = "REDUCE" if "_r_" in task else "MAP"
    name = f"attempt_{task}_{number}"
    yield (
        f"{side}_ATTEMPT_STARTED", "TaskAttemptStarted",
        {"taskid": f"task_{task}", "taskType": side, "attemptId": name, "startTime": T0 + began_s * 1000,
         "trackerName": "n1", "httpPort": 8042, "shufflePort": 1, "containerId": "container_1_0001_01_000002"},
    )  # fmt: skip
    ended = {"taskid": f"task_{task}", "attemptId": name, "taskType": side, "hostname": "n1",
             "finishTime": T0 + ended_s * 1000}  # fmt: skip
    if how == "FINISHED":
        yield (
            f"{side}_ATTEMPT_FINISHED", f"{side.capitalize()}AttemptFinished",
            ended | {"taskStatus": "SUCCEEDED"} | more,
        )  # fmt: skip
    else:
        yield f"{side}_ATTEMPT_{how}", "TaskAttemptUnsuccessfulCompletion", ended | {"status": how} | more


COUNTERS = {
    "name": "TOTAL_COUNTERS",
    "groups": [
        {
            "name": "org.apache.hadoop.mapreduce.JobCounter", "displayName": "Job Counters ",
            "counts": [
                {"name": "MILLIS_MAPS", "displayName": "", "value": 20_000},
                {"name": "MB_MILLIS_MAPS", "displayName": "", "value": 20_000 * 2048},
                {"name": "VCORES_MILLIS_MAPS", "displayName": "", "value": 40_000},
            ],
        }
    ],
}  # fmt: skip
JHIST_WHOLE = jhist(
    submitted("job_1_0001"),
    ("AM_STARTED", "AMStarted", {"startTime": T0 + 2000, "containerId": "container_1_0001_01_000001"}),
    ("JOB_INITED", "JobInited", {"jobid": "job_1_0001", "launchTime": T0 + 4000, "uberized": False}),
    ("TASK_STARTED", "TaskStarted", {"taskid": "task_1_0001_m_000000", "taskType": "MAP", "startTime": T0 + 5000}),
    *attempt("1_0001_m_000000", 0, 5, 9, "KILLED", error="Container preempted by scheduler"),
    *attempt("1_0001_m_000000", 1, 10, 20, mapFinishTime=T0 + 20_000),
    ("TASK_FINISHED", "TaskFinished", {"taskid": "task_1_0001_m_000000", "taskType": "MAP",
                                       "finishTime": T0 + 20_000, "status": "SUCCEEDED"}),
    *attempt("1_0001_r_000000", 0, 12, 40, shuffleFinishTime=T0 + 24_000, sortFinishTime=T0 + 25_000),
    ("JOB_FINISHED", "JobFinished", {"jobid": "job_1_0001", "finishTime": T0 + 42_000, "finishedMaps": 1,
                                     "totalCounters": COUNTERS}),
)  # fmt: skip
JHIST_WRAPPED = jhist(
    submitted("job_1_0002", wraps=True),
    *attempt("1_0002_m_000000", 0, 5, 9, "FAILED", error={"string": "exit 1"}),
    *attempt("1_0002_m_000000", 1, 6, 8, "KILLED", error={"string": "Attempt killed on request of a user"}),
    ("JOB_FAILED", "JobUnsuccessfulCompletion", {"jobid": "job_1_0002", "finishTime": T0 + 9000,
                                                 "jobStatus": "FAILED", "diagnostics": {"string": "x"}}),
)  # fmt: skip
JHIST_RUNNING = jhist(submitted("job_1_0003"), *attempt("1_0003_m_000000", 0, 5, 9))


def spark(*events: tuple[str, dict[str, object]], version: str = "3.5.1") -> str:
    """Return an event log."""
    rows: list[tuple[str, dict[str, object]]] = [("LogStart", {"Spark Version": version}), *events]
    lines = [
        json.dumps({"Event": f"SparkListener{name}", **fields}, separators=(",", ":"))
        for name, fields in rows
    ]
    return "\n".join(lines) + "\n"


def spark_app(application: str) -> tuple[tuple[str, dict[str, object]], ...]:
    return (
        ("EnvironmentUpdate", {"JVM Information": {}, "Spark Properties": {
            "spark.executor.memory": "2g", "spark.yarn.queue": "root.adhoc"}}),
        ("ApplicationStart", {"App Name": "scan", "App ID": application, "Timestamp": T0, "User": "bob",
                              "App Attempt ID": "1"}),
        ("ExecutorAdded", {"Timestamp": T0 + 5000, "Executor ID": "1",
                           "Executor Info": {"Host": "n7", "Total Cores": 2, "Log Urls": {}}}),
        ("ExecutorAdded", {"Timestamp": T0 + 6000, "Executor ID": "2",
                           "Executor Info": {"Host": "n8", "Total Cores": 2, "Log Urls": {}}}),
        ("TaskEnd", {"Stage ID": 0, "Stage Attempt ID": 0, "Task Type": "ResultTask",
                     "Task Info": {"Task ID": 0, "Launch Time": T0 + 7000, "Finish Time": T0 + 9000,
                                   "Failed": False, "Killed": False, "Accumulables": []}}),
        ("StageCompleted", {"Stage Info": {"Stage ID": 0, "Stage Attempt ID": 0, "Number of Tasks": 1,
                                           "Submission Time": T0 + 7000, "Completion Time": T0 + 9000}}),
        ("ExecutorRemoved", {"Timestamp": T0 + 20_000, "Executor ID": "1",
                             "Removed Reason": "Container container_1_0009_01_000002 on host: n7 was preempted."}),
    )  # fmt: skip


SPARK_ENDED = spark(*spark_app("application_1_0009"), ("ApplicationEnd", {"Timestamp": T0 + 30_000}))
SPARK_TORN = spark(*spark_app("application_1_0010")) + '{"Event":"SparkListenerTaskEnd"'
SPARK_EMPTY = spark()
SWIM_ROW = "{}\t{}\t0\t134217728\t{}\t0"
SWF_ROW = "{} {} {} {} {} -1 {} {} -1 -1 {} 3 1 7 2 -1 -1 -1"
SLS_TASK = {
    "container.host": "/r/n1",
    "container.start.ms": 1000,
    "container.end.ms": 4000,
    "container.type": "map",
}
RUMEN_MAP = {
    "taskID": "task_1_0001_m_000000",
    "attempts": [
        {"attemptID": "a0", "result": "KILLED", "startTime": T0 + 1, "finishTime": T0 + 500},
        {"attemptID": "a1", "result": "SUCCESS", "startTime": T0 + 600, "finishTime": T0 + 900},
    ],
}
RUMEN = {
    "priority": "NORMAL", "jobID": "job_1_0001", "user": "u", "submitTime": T0, "launchTime": T0, "queue": "q",
    "finishTime": T0 + 2000, "outcome": "SUCCESS", "mapTasks": [RUMEN_MAP], "reduceTasks": [],
}  # fmt: skip
APPLICATION = {
    "id": "application_1_0001", "user": "a", "name": "etl", "queue": "root.etl", "state": "FINISHED",
    "finalStatus": "SUCCEEDED", "applicationType": "TEZ", "startedTime": T0, "finishedTime": T0 + 60_000,
    "memorySeconds": 600_000,
}  # fmt: skip
ENDED = {"id": "job_1_0001", "user": "a", "name": "etl", "queue": "etl", "state": "SUCCEEDED", "submitTime": T0,
         "startTime": T0 + 1, "finishTime": T0 + 9}  # fmt: skip
FIELDS_2017 = (
    "appId=application_1_0001,name=select count(*)\\, sum(a),user=joe,queue=default,state=FINISHED,trackingUrl=http://r/,"
    f"appMasterHost=n1,startTime={T0},finishTime={T0 + 60_000},finalStatus=SUCCEEDED,memorySeconds=95465,"
    "vcoreSeconds=54,preemptedAMContainers=0,preemptedNonAMContainers=2,preemptedResources=<memory:0\\, vCores:0>,"
    "applicationType=MAPREDUCE"
)
FIELDS_2015 = (
    "appId=application_1_0002,name=Spark shell,user=bob,queue=default,state=FINISHED,trackingUrl=http://r/A,"
    f"appMasterHost=n1,startTime={T0},finishTime={T0 + 9000},finalStatus=SUCCEEDED"
)

READ: dict[str, Sample] = {
    "jhist whole": Sample(JHIST_WHOLE, 1, 3),
    "jhist failed, texts wrapped": Sample(JHIST_WRAPPED, 1, 2),
    "jhist without an end": Sample(JHIST_RUNNING, 0, 0, 1),
    "jhist torn": Sample(JHIST_WHOLE[:-60], 0, 0, 1),
    "spark ended": Sample(SPARK_ENDED, 1, 2),
    "spark torn at its end": Sample(SPARK_TORN, 1, 2),
    "spark torn in its middle": Sample(SPARK_TORN + "\n" + SPARK_ENDED, 0, 0, 1),
    "spark without a start": Sample(SPARK_EMPTY, 0, 0, 1),
    "sls by count": Sample(json.dumps({"am.type": "stream", "job.start.ms": 5, "job.tasks": [
        {"duration.ms": 900, "count": 4, "container.type": "stream", "container.memory-mb": 2048}]}), 1, 4),
    "sls a job a line": Sample("\n".join(
        json.dumps({"job.id": f"j{n}", "job.start.ms": n, "job.end.ms": 9000, "job.tasks": [SLS_TASK] * n})
        for n in (1, 2)), 2, 3),
    "sls with a wrong number": Sample(json.dumps({"job.start.ms": "soon", "job.tasks": []}), 0, 0, 1),
    "dynoyarn runtimes": Sample(json.dumps({
        "amResourceRequest": {"memoryMB": 4096, "vcores": 2}, "appId": "application_1_1", "appType": "MAPREDUCE",
        "queue": "q", "user": "u", "submitTime": T0, "resourceRequestSpecs": [
            {"runtimes": [100, 200], "numInstances": 1, "resource": {"memoryMB": 2048, "vcores": 1}, "priority": 20},
            {"runtimes": [300], "numInstances": 1, "priority": 10}]}), 1, 3),
    "dynoyarn average": Sample(json.dumps({
        "appId": "a", "submitTime": 0, "resourceRequestSpecs": [{"averageRuntime": 50, "numInstances": 400}]}), 1, 400),
    "dynoyarn without an id": Sample(json.dumps({"amResourceRequest": {}, "submitTime": 5}), 0, 0, 1),
    "swf with a header": Sample("; Version: 2\n; UnixStartTime: 1700000000\n" + SWF_ROW.format(
        1, 5, 7, 100, 4, 2048, 4, 1), 1, 4),
    "swf without a header": Sample(SWF_ROW.format(1, 5, -1, 100, -1, -1, 3, 0), 1, 3),
    "swf cancelled, torn": Sample(";\n" + SWF_ROW.format(1, 5, 0, -1, 4, -1, 4, 5) + "\n1 2 3\n", 0, 0, 2),
    "swim of six columns": Sample(SWIM_ROW.format("job0", 1, 0) + "\n" + SWIM_ROW.format("job1", 2, 99), 2, 3),
    "swim of eight columns": Sample(SWIM_ROW.format("job0", 1, 0) + "\tinputPath0\toutputPath0\n", 1, 1),
    "swim of eight columns, two jobs": Sample("".join(SWIM_ROW.format(f"job{n}", n, 0) + f"\tin{n}\tout{n}\n" for n in (0, 1)), 2, 2),
    "swim of eight columns, a path is empty": Sample(SWIM_ROW.format("job0", 1, 99) + "\t\toutputPath0\n", 1, 2),
    "swim of nine columns": Sample(SWIM_ROW.format("job0", 1, 0) + "\tinputPath0\t\t\n", 1, 1),
    "swim of nine columns, two jobs": Sample("".join(SWIM_ROW.format(f"job{n}", n, 0) + f"\tin{n}\tout{n}\t{n}\n" for n in (0, 1)), 2, 2),
    "swim of nine columns, reduces": Sample(SWIM_ROW.format("job0", 1, 99) + "\tin0\t\tout0\n", 1, 2),
    "alibaba 2017": Sample("10,20,1,1,3,Terminated,50,0.1\n10,30,1,2,2,Terminated,100,0.1\n", 1, 5),
    "alibaba 2017, waiting": Sample("10,20,1,1,3,Failed,50,\n0,20,2,1,3,Waiting,,\n", 1, 3, 1),
    "alibaba 2017, two jobs": Sample("10,20,1,1,2,Terminated,50,0.1\n15,30,2,1,1,Terminated,50,0.1\n", 2, 3),
    "alibaba 2018": Sample("M1,2,j_1,1,Terminated,100,200,100.0,0.3\nR2_1,1,j_1,1,Terminated,200,250,50,0.3\n", 1, 3),
    "alibaba 2018, no end": Sample("task_x,1,j_3,1,Running,100,0,100,0.3\n", 0, 0, 1),
    "alibaba 2018, two jobs": Sample("M1,2,j_1,1,Terminated,100,200,100,0.3\nM1,1,j_2,1,Terminated,150,250,50,0.3\n", 2, 3),
    "rumen": Sample(json.dumps(RUMEN), 1, 2),
    "rumen, several": Sample(json.dumps(RUMEN) + "\n" + json.dumps(RUMEN | {"jobID": "job_1_0002"}), 2, 4),
    "rumen of nulls": Sample(json.dumps(RUMEN) + " " + json.dumps(dict.fromkeys(RUMEN) | {
        "submitTime": -1, "launchTime": -1, "finishTime": -1}), 1, 2, 1),
    "applications": Sample(json.dumps({"apps": {"app": [APPLICATION]}}), 1, 0),
    "applications, one runs": Sample(json.dumps({"apps": {"app": [
        APPLICATION, APPLICATION | {"id": "application_1_0002", "finishedTime": 0}]}}), 1, 0, 1),
    "one application": Sample(json.dumps({"app": APPLICATION}, indent=1), 1, 0),
    "history list": Sample(json.dumps({"jobs": {"job": [ENDED]}}), 1, 0),
    "history job": Sample(json.dumps({"job": ENDED}), 1, 0),
    "history list, one not ended": Sample(json.dumps({"jobs": {"job": [ENDED, ENDED | {
        "id": "job_1_0002", "finishTime": 0}]}}), 1, 0, 1),
    "log of 2017": Sample("2026-11-23 10:06:56,709 INFO x.LeafQueue: removed\n" + SUMMARY + FIELDS_2017, 1, 0),
    "log of 2015": Sample(SUMMARY + FIELDS_2015 + "\n", 1, 0),
    "log lines of another program": Sample(FIELDS_2017 + "\n" + FIELDS_2015.replace(
        f"finishTime={T0 + 9000}", "finishTime=0"), 1, 0, 1),
}  # fmt: skip

REFUSED: dict[str, tuple[bytes, str]] = {
    "binary jhist": (b"Avro-Binary\n\x00", "binary job history"),
    "hadoop 1": (b'Meta VERSION="1" .\nJob JOBID="job_1_1"', "job history of Hadoop 1"),
    "empty": (b" \n", "empty file"),
    "job.xml": (b'<?xml version="1.0"?><configuration><property>', "configuration of a job"),
    "xml": (b'<?xml version="1.0"?><apps><app>', "answer in XML"),
    "page": (b"<!DOCTYPE html>\n<html>", "HTML page"),
    "list": (b"Total number of applications (application-types: []): 1\n", "yarn application -list"),
    "syn": (b'{"description": "x", "num_nodes": 9, "job_classes": [{', "SLS's generator"),
    "nodes": (b'{"rack": "r1", "nodes": [{"node": "n1"}]}', "list of nodes of SLS"),
    "topology": (b'{ "name" : "<root>", "children" : [', "topology of Rumen"),
    "philly": (b'[{"status": "Pass", "vc": "a", "jobid": "b", "attempts": []}]', "Philly"),
    "google 2019": (b'{"time":"0","type":"1","collection_id":"5"}', "Google trace of 2019"),
    "google 2011": (
        b"0,2,3418309,0,4155527081,0,abc=,3,9,0.125,0.07446,0.0004244,0\n",
        "Google trace of 2011",
    ),
    "helios": (b"job_id,user,gpu_num,cpu_num,node_num\n", "Helios"),
    "openb": (b"name,cpu_milli,memory_mib,num_gpu\n", "trace of pods"),
    "extract": (b",submit_time,duration,cpu,memory,job_id\n", "extract of Alibaba"),
    "instances": (b"1,2,1,1,673,Terminated,1,1,0.5,0.4,0.1,0.1\n", "batch_instance.csv"),
    "parquet": (b"PAR1\x00\x00", "Parquet"),
    "zstd": (b"\x28\xb5\x2f\xfd\x00", "zstd"),
    "lz4": (b"LZ4Block\x10", "lz4"),
    "torn gzip": (b"\x1f\x8b\x08\x00\x00", "gzip data is torn"),
    "words": (b"hello\n", "not recognised by its first bytes: 'hello'"),
    "latin": (b"; \xe9\n", "not UTF-8"),
    "torn json": (b'{"am.type": "mapreduce", "job.start.ms": 1,', "torn JSON"),
    "torn apps": (b'{"apps": {"app": [{"id": "a', "cannot be read"),
}
