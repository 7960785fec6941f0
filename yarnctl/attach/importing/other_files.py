"""Kinds of files that are not read, by their first characters or bytes, and what to do instead."""

from __future__ import annotations

import re
from typing import NamedTuple

AS_SWF = "write them in the Standard Workload Format, 18 numbers a job"
UNCOMPRESSED = "run the job with spark.eventLog.compress=false, or import from --spark-history"


class RefusedFile(NamedTuple):
    """A kind of file; ``name`` follows "is"."""

    name: str
    pattern: re.Pattern[str]
    remedy: str


def _other(name: str, pattern: str, remedy: str) -> RefusedFile:
    return RefusedFile(name, re.compile(pattern, re.DOTALL), remedy)


OTHERS = (
    _other("an empty file", r"\s*$", "leave it out"),
    _other(
        "a binary job history",
        r"Avro-Binary\n",
        "import from the history server, which reads it, or set mapreduce.jobhistory.jhist.format=json",
    ),
    _other(
        "a job history of Hadoop 1",
        r'Meta VERSION="1"',
        "convert it with Rumen of Hadoop 1, and import its trace",
    ),
    _other(
        "the configuration of a job",
        r"\s*<\?xml[^>]*>\s*(?:<!--.*?-->)?\s*(?:<\?xml[^>]*>\s*)?<configuration>",
        "give the .jhist file beside it",
    ),
    _other(
        "an answer in XML",
        r"\s*<\?xml[^>]*>\s*<(?:apps?|jobs?)>",
        "save it as JSON: curl -H 'Accept: application/json'",
    ),
    _other("an HTML page", r"\s*<(?:![Dd][Oo]|[Hh][Tt][Mm][Ll])", "save the answer of /ws/v1/cluster/apps"),
    _other(
        "the output of yarn application -list",
        r".*?(?:Total number of applications|Application-Id\s+Application-Name)",
        "it has no times: save /ws/v1/cluster/apps, or import from --rm",
    ),
    _other(
        "input of SLS's generator",
        r'\s*\{.*?"job_classes"\s*:',
        "it has distributions and no jobs: run SLS, and save its ResourceManager's log",
    ),
    _other("a list of nodes of SLS", r'\s*[\[{].*?"rack"\s*:\s*".*?"nodes"\s*:', "give the file of jobs"),
    _other("a topology of Rumen", r'\s*\{\s*"name"\s*:\s*"<root>"', "give the trace beside it"),
    _other(
        "Microsoft's Philly trace",
        r'\s*\[\s*\{.*?"(?:vc|attempts)"\s*:',
        f"it has GPUs and no memory: {AS_SWF}",
    ),
    _other(
        "a Google trace of 2019",
        r'\s*\{.*?"(?:collection_id|collection_type)"\s*:',
        f"its tasks have no queue and parts of a machine: {AS_SWF}",
    ),
    _other(
        "a Google trace of 2011",
        r"\d+,\d*,\d+,\d*,\d*,\d,[^,\n]*,\d,\d+,[\d.]*,[\d.]*,[\d.]*,\d?\r?(?:\n|$)",
        f"its tasks have no queue and parts of a machine: {AS_SWF}",
    ),
    _other("the Helios trace", r"job_id,user,gpu_num,", f"it has GPUs and no memory: {AS_SWF}"),
    _other("Alibaba's trace of pods", r"name,cpu_milli,memory_mib,", f"pods have no queue: {AS_SWF}"),
    _other(
        "an extract of Alibaba's trace",
        r",submit_time,duration,cpu,memory,",
        "give batch_task.csv as Alibaba publishes it",
    ),
    _other(
        "Alibaba's batch_instance.csv",
        r"(?:[^,\n]*,){11}(?:[^,\n]*,[^,\n]*,)?[^,\n]*\r?(?:\n|$)",
        "give batch_task.csv",
    ),
)
MAGICS = (
    (b"PAR1", "a Parquet file", "a week is read by yarn-emulator compare --week DIR"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "run unzstd first"),
    (b"LZ4Block", "compressed by lz4", UNCOMPRESSED),
    (b"\x82SNAPPY\x00", "compressed by snappy", UNCOMPRESSED),
    (b"ZV", "compressed by lzf", UNCOMPRESSED),
    (b"BZh", "compressed by bzip2", "run bunzip2 first"),
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"Obj\x01", "an Avro file", "convert it with avro-tools tojson"),
    (b"SEQ", "a sequence file", "write its values as text with hadoop fs -text"),
)
