"""Command lines that people type, each with its right value: the parts of the new command, or of the error.

A row that starts with ``!`` is refused; its parts are those of the message, in their order.
"""

# ruff: noqa: E501 (a row a line)
from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from yarnctl.cli.wrap import command as wrap
from yarnctl.errors import BadInput
from yarnctl.frameworks.application_files import read_application
from yarnctl.frameworks.submissions import FRAMEWORKS, kind_of

JAR = "hadoop jar hadoop-streaming.jar"
JOB = "-mapper m.py -reducer r.py -input in -output out"
BY_FIELDS = "-partitioner org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"
TWO_FIELDS = "-D stream.num.map.output.key.fields=2 -D mapreduce.partition.keypartitioner.options=-k1,1"
COMPARATOR = "-D mapreduce.job.output.key.comparator.class="
COMPARATOR += "org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedComparator"
ALONE = "submit it without yarnctl wrap"
RUNS = "-reducer 'sh yarnctl_task.py --restartable -- {}'"
RED = RUNS.format("r.py")
SHIPPED = "yarnctl_task.py"

STREAMING = {
    # Spellings that Hadoop's own parsers accept
    f"{JAR} --files m.py,r.py {JOB}": ["--files m.py,r.py,/", SHIPPED, RED],
    f"{JAR} -files=m.py,r.py {JOB}": ["-files=m.py,r.py,/", SHIPPED, RED],
    f"{JAR} --D a=b --input in --output out --mapper cat --reducer cat": [
        "-files /", "--D a=b --input in", "--reducer 'sh yarnctl_task.py --restartable -- cat'"],
    f"{JAR} -archives env.tgz#env -libjars a.jar,b.jar {JOB}": ["-archives 'env.tgz#env' -libjars a.jar", RED],
    # Several values behind one option
    f"{JAR} -input a.txt b.txt -output out -mapper cat -reducer cat": ["-input a.txt b.txt -output out"],
    f"{JAR} -input a -output out -file m.py r.py -mapper m.py -reducer r.py": ["-file m.py r.py -mapper", RED],
    f"{JAR} -input 2024/01 2024/02 2024/03 -output out -mapper cat -reducer cat": ["2024/02 2024/03 -output"],
    f"{JAR} -cacheFile hdfs:///a#a hdfs:///b#b {JOB}": ["-cacheFile 'hdfs:///a#a' 'hdfs:///b#b'", RED],
    f"{JAR} -cacheArchive hdfs:///a.tgz#a hdfs:///b.tgz#b {JOB}": ["'hdfs:///b.tgz#b' -mapper", RED],
    # Lines as they are
    f"{JAR} -Dmapreduce.job.reduces=4 -jobconf mapred.job.name=x {JOB}": ["-Dmapreduce.job.reduces=4", RED],
    f"env PYTHONPATH=. {JAR} -files m.py#mapper.py,r.py {JOB}": ["env PYTHONPATH=. hadoop jar", "r.py,/"],
    f"hadoop --config /etc/hadoop/research jar s.jar {JOB}": ["hadoop --config /etc/hadoop/research jar s.jar", RED],
    f"yarn jar /opt/hadoop-streaming-3.3.6.jar {JOB}": ["yarn jar /opt/hadoop-streaming-3.3.6.jar -D", SHIPPED, RED],
    f"hadoop streaming {JOB}": ["hadoop streaming -D", SHIPPED, RED],
    f"""{JAR} -mapper "awk '{{print $1}}'" -reducer "uniq -c" -input {{a,b}} -output out""": [
        RUNS.format("uniq -c"), "-input '{a,b}'"],
    f"{JAR} -mapper 'sh -ex setup-wrapper.sh python3 j.py --mapper' -combiner c.py -reducer 'Rscript r.R' -io text":
        ["-combiner c.py", RUNS.format("Rscript r.R")],
    # Programs: Amazon's name, Hadoop's own name of the job, users in front
    f"hadoop-streaming -files m.py,r.py {JOB}": ["hadoop-streaming", "-files m.py,r.py,/", SHIPPED, RED],
    f"command-runner.jar hadoop-streaming -files m.py {JOB}": ["command-runner.jar hadoop-streaming", RED],
    f"/usr/bin/hadoop-streaming -D mapreduce.job.reduces=2 {JOB}": ["/usr/bin/hadoop-streaming", RED],
    f"{JAR} streamjob {JOB}": ["hadoop-streaming.jar streamjob -D", SHIPPED, RED],
    f"sudo -u hadoop {JAR} {JOB}": ["sudo -u hadoop hadoop jar", RED],
    f"sudo -E -u streaming mapred streaming {JOB}": ["sudo -E -u streaming mapred streaming -D", SHIPPED, RED],
    f"nohup nice -n 5 mapred streaming {JOB}": ["nohup nice -n 5 mapred streaming -D", SHIPPED, RED],
    # Jobs without a reduce that could be suspended
    f"{JAR} -D mapred.reduce.tasks=0 -input in -output out -mapper m.py": [
        "!-D mapreduce.job.reduces=0: the job has no reduces", ALONE],
    f"{JAR} -input in -output out -mapper m.py -numReduceTasks 0": [
        "!-numReduceTasks 0: the job has no reduces", ALONE],
    "mapred streaming -jobconf mapred.reduce.tasks=0 -mapper m.py -input in -output out": [
        "!-D mapreduce.job.reduces=0: the job has no reduces", ALONE],
    f"{JAR} -D mapreduce.job.reduces=0 {JOB}": ["!-D mapreduce.job.reduces=0: the job has no reduces", ALONE],
    f"{JAR} -D mapreduce.job.reduces=2 -input in -output out -mapper m.py": [
        "!-reducer: is missing", "identity reducer", ALONE],
    "mapred streaming -input in -output out -mapper m.py -numReduceTasks 3": [
        "!-reducer: is missing", "identity reducer", ALONE],
    f"{JAR} -input in -output out": ["!-reducer: is missing", ALONE],
    f"{JAR} {JOB} -combiner c.py -reducer aggregate": ["!-reducer: given 2 times", "keep only the first"],
    f"{JAR} -mapper m.py -reducer org.apache.hadoop.mapred.lib.IdentityReducer": ["!-reducer", "not a command", ALONE],
    # What a wrapped job would compute otherwise
    f"{JAR} {TWO_FIELDS} {BY_FIELDS} {JOB}": ["!--restartable: the key has 2 fields", "--group-fields 1"],
    f"{JAR} {TWO_FIELDS} {COMPARATOR} {JOB}": ["!comparator", ALONE],
    f"{JAR} -io typedbytes {JOB}": ["!-io typedbytes", ALONE],
    f"{JAR} -D 'stream.map.output.field.separator=\\t' {JOB}": ["!not one byte", ALONE],
    f"{JAR} {JOB} '\\ '": ["!'\\ ': is not an option"],
    # Other jobs: their program, and what reaches them
    "hadoop jar hadoop-mapreduce-examples.jar teragen 100 /t": ["!teragen", "streaming", "without yarnctl wrap"],
    "hadoop jar my.jar com.example.Main -D a=b in out": ["!com.example.Main", "without yarnctl wrap"],
    "hadoop distcp -m 3 hdfs://a/x hdfs://b/y": ["!hadoop distcp: ", "without yarnctl wrap", "--eviction mix"],
    "hbase org.apache.hadoop.hbase.mapreduce.Export t /out": ["!hbase org.apache", "--eviction mix"],
    "sqoop import --connect jdbc:mysql://h/d --table t -m 4": ["!sqoop: ", "--eviction mix"],
    "hive -e 'select 1'": ["!hive: ", "--eviction mix"],
    "sudo -u hdfs pig -x mapreduce a.pig": ["!pig: ", "--eviction mix"],
    "oozie job -run -config job.properties": ["!oozie: ", "--eviction mix"],
    "mapred --config /etc/hadoop distcp a b": ["!mapred distcp: ", "--eviction mix"],
    "timeout 3600 bin/nutch crawl urls": ["!nutch: ", "--eviction mix"],
    f'su - hdfs -c "{JAR} {JOB}"': ["!su: ", "in one word", "yarnctl wrap ... -- hadoop jar"],
    "spark-submit --master yarn a.py": ["!spark-submit: ", "add --spark"],
    "/opt/flink/bin/flink run-application -t yarn-application a.jar": ["!flink run-application: ", "add --flink"],
    "hadoop jar hadoop-streaming.jar dumptb /seq": ["!dumptb: ", "without yarnctl wrap"],
}  # fmt: skip
"""Words behind ``yarnctl wrap --restartable --store webhdfs://nn.example:9870/yarnctl/checkpoints --``."""

ON_YARN = "--master yarn --deploy-mode client"
DRAIN = "spark.yarn.tags=yarnctl-drain:signal"
KEPT = f"--conf {DRAIN}"
SPARK = {
    # Names of Cloudera's and Amazon's programs
    f"spark3-submit {ON_YARN} --executor-memory 6G --num-executors 10 --files a.properties,b.json app.py": [
        "spark3-submit --conf spark.decommission.enabled=true", DRAIN, "yarnctl-trap.sh", "--files a.properties,b.json app.py"],
    f"/opt/cloudera/parcels/CDH/bin/spark3-submit {ON_YARN} app.py": ["bin/spark3-submit --conf", DRAIN, "app.py"],
    f"spark3.5-submit {ON_YARN} app.py": ["spark3.5-submit --conf", DRAIN],
    f"nohup sudo -u pyspark spark-submit {ON_YARN} app.py": ["sudo -u pyspark spark-submit --conf", DRAIN],
    f"env SPARK_MAJOR_VERSION=3 spark-submit {ON_YARN} app.py": ["SPARK_MAJOR_VERSION=3 spark-submit --conf"],
    f"spark-class org.apache.spark.deploy.SparkSubmit {ON_YARN} a.jar": ["SparkSubmit --conf", DRAIN],
    f"spark2-submit {ON_YARN} app.py": ["!spark2-submit", "cannot decommission", "3.2 or newer"],
    # Programs that take the same options
    "spark-sql --master yarn -e 'select 1' --conf spark.yarn.tags=etl --hiveconf a=b -S": [
        "spark-sql --conf", "spark.yarn.tags=etl,yarnctl-drain:signal", "-e 'select 1' --hiveconf a=b -S"],
    "spark3-sql --master yarn -f q.sql --num-executors 4": ["spark3-sql --conf", DRAIN, "-f q.sql --num-executors 4"],
    "spark-shell --master yarn --jars a.jar -i init.scala": ["spark-shell --conf", DRAIN, "--jars a.jar -i init.scala"],
    "spark2-shell --master yarn": ["!spark2-shell", "cannot decommission"],
    "pyspark --master yarn --num-executors 2": ["pyspark --conf", DRAIN, "--num-executors 2"],
    "pyspark3 --master yarn": ["pyspark3 --conf", DRAIN],
    "sparkR --master yarn --executor-memory 2g": ["!sparkR", "processes of R", "use --route plugin"],
    "run-example --master yarn SparkPi 100": ["run-example --conf", DRAIN, "SparkPi 100"],
    "./bin/run-example --master=yarn --deploy-mode=cluster ml.KMeansExample": ["run-example --conf", DRAIN],
    "/opt/spark/sbin/start-thriftserver.sh --master yarn --hiveconf hive.server2.thrift.port=1": [
        "start-thriftserver.sh --conf", DRAIN, "--hiveconf hive.server2.thrift.port=1"],
    "spark-submit --class org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver --master yarn -f q.sql --conf a=b": [
        "spark-submit --conf", DRAIN, "SparkSQLCLIDriver --master yarn -f q.sql --conf a=b"],
    "spark-sql --master yarn --deploy-mode cluster -e x": ["!--deploy-mode cluster", "spark-sql", "client"],
    "pyspark --master yarn --conf spark.submit.deployMode=cluster": ["!deployMode=cluster", "client"],
    # Settings that turn leaving into killing
    f"spark-submit {ON_YARN} --conf spark.executor.decommission.forceKillTimeout=60s app.py": [
        "!forceKillTimeout=60s", "remove spark.executor.decommission.forceKillTimeout"],
    f"spark-sql {ON_YARN} -e x --conf spark.executor.decommission.forceKillTimeout=60s": ["!forceKillTimeout=60s"],
    # Lines as they are
    f"spark-submit {ON_YARN} --py-files a.zip --archives env.tgz#env --keytab k --principal p app.py --conf x=y": [
        KEPT, "--py-files a.zip --archives 'env.tgz#env' --keytab k --principal p", "app.py --conf x=y"],
    f"nohup env A=1 spark-submit {ON_YARN} --name 'a b' app.py": ["nohup env A=1 spark-submit --conf", "'a b' app.py"],
    f"spark-submit {ON_YARN} --conf spark.plugins=org.apache.gluten.GlutenPlugin app.py": [KEPT, "GlutenPlugin"],
    # Other places, other programs
    "spark-submit --master yarn-cluster app.py": ["!--master yarn-cluster", "--master yarn --deploy-mode cluster"],
    "spark-submit --master local[4] app.py": ["!--master local[4]", "use --master yarn"],
    "spark-submit --status app-1": ["!--status: does not submit"],
    f"{JAR} {JOB}": ["!hadoop jar: ", "remove --spark"],
    "hive -e 'select 1'": ["!hive: ", "without yarnctl wrap"],
    "flink run -t yarn-application a.jar": ["!flink run: ", "replace --spark by --flink"],
    "bash -lc 'spark-submit --master yarn app.py'": ["!bash: ", "in one word", "yarnctl wrap ... -- spark-submit"],
}  # fmt: skip
"""Words behind ``yarnctl wrap --spark --``."""

NEW = "flink run-application -t yarn-application"
OLD_SLOTS = "-Dtaskmanager.numberOfTaskSlots=2"
FLINK = {
    "flink run -m yarn-cluster -p 4 -ys 2 -yjm 1024 -ytm 4096m -ynm 'my job' -yqu etl -yD a=b app.jar --in x": [
        "!-m yarn-cluster: ", f"use: {NEW} -p 4 {OLD_SLOTS} -Djobmanager.memory.process.size=1024m"
        " -Dtaskmanager.memory.process.size=4096m '-Dyarn.application.name=my job'"
        " -Dyarn.application.queue=etl -Da=b app.jar --in x"],
    "flink run -m yarn-cluster -yn 2 app.jar": ["!-m yarn-cluster", f"{NEW} app.jar"],
    "flink run --jobmanager yarn-cluster -d -yDx=y -c a.Main app.jar": [
        "!--jobmanager yarn-cluster", f"{NEW} -d -Dx=y -c a.Main app.jar"],
    "sudo -u flink flink run -m yarn-cluster --yarnslots 2 --yarnqueue=etl -yd app.jar": [
        "!-m yarn-cluster", f"sudo -u flink {NEW} {OLD_SLOTS} -Dyarn.application.queue=etl -d app.jar"],
    "flink run -m yarn-cluster -yt /lib -yt=/conf -yjm 2g app.jar": [
        "!-m yarn-cluster", f"{NEW} '-Dyarn.ship-files=/lib;/conf' -Djobmanager.memory.process.size=2g app.jar"],
    "flink run -e yarn-per-job -p 2 app.jar": ["!-e yarn-per-job", "flink run --target=yarn-per-job -p 2 app.jar"],
    "flink run -m jm.example:8081 app.jar": ["!-m jm.example:8081", "running cluster", "-t yarn-application"],
    "flink run -yid application_1_0001 app.jar": ["!-yid application_1_0001", "running cluster"],
    f"{NEW} -Dyarn.application.name=x -Dyarn.provided.lib.dirs=hdfs:///lib -s hdfs:///sp app.jar": [
        "-Dyarn.tags=yarnctl-drain:", "-s hdfs:///sp app.jar"],
    f"docker exec flink {NEW} -py job.py": ["docker exec flink flink run-application -D", "-py job.py"],
    f"env -C /opt/flink {NEW} app.jar": ["env -C /opt/flink flink run-application -D", "app.jar"],
    f"sudo -u flink /opt/flink-1.17/bin/{NEW} app.jar": ["sudo -u flink /opt/flink-1.17/bin/flink run-appl", "-D"],
    "flink list": ["!flink list: ", "is not a job of flink run"],
    "spark-submit --master yarn app.py": ["!spark-submit: ", "replace --flink by --spark"],
}  # fmt: skip
"""Words behind ``yarnctl wrap --flink --``."""

CLUSTER = "--master yarn --deploy-mode cluster"
GATE = "streaming, spark-submit and flink"
ADMITTED = {
    f"spark2-submit {CLUSTER} --num-executors 20 app.jar": ["spark:21", "spark2-submit --conf spark.a=b"],
    f"spark3-submit {CLUSTER} --num-executors 2 app.jar": ["spark:3", "spark3-submit --conf spark.a=b"],
    f"run-example {CLUSTER} --num-executors 2 SparkPi 10": ["spark:3", "run-example --conf spark.a=b"],
    f"yarnctl wrap --spark --requests webhdfs://nn/pyspark --exec -- spark3-submit {CLUSTER} a.py": [
        "spark:None", "-- spark3-submit --conf spark.a=b"],
    f"{JAR} -D mapred.reduce.tasks=0 -D mapreduce.job.maps=4 -input a b -output o -mapper m": [
        "mapreduce:5", "-input a b -output o"],
    f"hadoop-streaming -jobconf mapreduce.job.maps=4 {JOB}": ["mapreduce:5", "hadoop-streaming -D spark.a=b"],
    f"{JAR} streamjob --input a b --output o --mapper m": ["mapreduce:None", "streamjob -D spark.a=b --input a b"],
    f"docker exec hadoop spark-submit {CLUSTER} a.jar": ["spark:None", "docker exec hadoop spark-submit --conf"],
    f"{NEW} -p 8 app.jar": ["flink:9", "flink run-application -Dspark.a=b -t"],
    "flink run -m yarn-cluster -p 8 app.jar": ["!-m yarn-cluster", f"use: {NEW} -p 8 app.jar"],
    f"sudo -u hadoop spark-submit {CLUSTER} app.jar": ["!sudo: ", "run sudo ... yarnctl admit"],
    f"sudo -u flink {NEW} app.jar": ["!sudo: ", "run sudo ... yarnctl admit"],
    f"runuser -u hdfs -- {JAR} {JOB}": ["!runuser: ", "run runuser ... yarnctl admit"],
    f"su - hdfs -c '{JAR} {JOB}'": ["!su: ", "in one word", "yarnctl admit ... -- hadoop jar"],
    "spark-sql --master yarn -e 'select 1'": ["!spark-sql: ", "outside of YARN", "spark-submit --deploy-mode cluster"],
    "pyspark3 --master yarn": ["!pyspark3: ", "outside of YARN", "spark-submit --deploy-mode cluster"],
    "hadoop jar hadoop-mapreduce-examples.jar teragen -D mapreduce.job.maps=4 100 /t": [
        "!teragen: ", "program in a jar", "yarnctl place"],
    "yarn jar my.jar com.example.Main in out": ["!com.example.Main: ", "program in a jar", "yarnctl place"],
    "hadoop distcp -D mapreduce.job.queuename=research -m 3 hdfs://a/x hdfs://b/y": ["!hadoop distcp: ", GATE],
    "hive -e 'select 1'": ["!hive: ", GATE],
    "sqoop import --table t": ["!sqoop: ", GATE],
    "beeline -u jdbc:hive2://h -f /apps/flink": ["!beeline: ", GATE],
    "sudo -u hdfs yarn app -list": ["!yarn app: ", GATE],
}  # fmt: skip
"""Words behind ``yarnctl admit --deadline 10m --``: framework and containers, and the words with a setting."""

PLACED = {
    ("spark", f"spark3-submit {CLUSTER} app.jar"): ["spark3-submit --conf spark.a=b"],
    ("spark", f"run-example {CLUSTER} SparkPi"): ["run-example --conf spark.a=b"],
    ("spark", "spark-sql --master yarn -e x"): ["!app.toml: [spark]: spark-sql: ", "outside of YARN"],
    ("spark", "hadoop distcp a b"): ["!app.toml: [spark]: the command runs hadoop distcp", "spark-submit"],
    ("spark", "spark-beeline -f x"): ["!app.toml: [spark]: the command runs spark-beeline", "spark-submit"],
    ("mapreduce", "hadoop distcp a b"): ["!app.toml: [mapreduce]: the command runs hadoop distcp", "hadoop jar"],
    ("mapreduce", "hive -e x"): ["!app.toml: [mapreduce]: the command runs hive", "hadoop jar"],
    ("mapreduce", "mapred archive a b"): ["!app.toml: [mapreduce]: the command runs mapred archive", "hadoop jar"],
    ("mapreduce", f"{JAR} -input a b -output o-{{run}} -mapper m"): ["-D spark.a=b -input a b -output o-0"],
    ("mapreduce", "hadoop jar my-job.jar com.ex.Main -Da=b in"): ["com.ex.Main -D spark.a=b -Da=b in"],
    ("flink", "flink run -m yarn-cluster app.jar"): ["!app.toml: [flink]: -m yarn-cluster: ", f"use: {NEW} app.jar"],
    ("flink", "sh -c 'flink run app.jar'"): ["!app.toml: [flink]: the command runs sh", "flink run-application"],
}  # fmt: skip
"""Commands of ``APP.toml``, with their section."""


def answered(line: str, run) -> str:
    """Return the words that ``run`` makes of a line, or "!" and the error."""
    try:
        return run(shlex.split(line))
    except BadInput as error:
        return f"!{error}"


def has_parts(parts: list[str], text: str) -> None:
    assert text.startswith("!") == parts[0].startswith("!"), text
    place = 1 if text.startswith("!") else 0
    for part in parts:
        found = text.find(part.removeprefix("!"), place)
        assert found >= 0, f"{part!r} is not in {text!r}"
        place = found + len(part.removeprefix("!"))


def wrapped(capsys, *options: str):
    def run(words: list[str]) -> str:
        wrap.main(args=[*options, "--", *words], standalone_mode=False)
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("line", STREAMING)
def test_wrap_of_streaming(line, capsys):
    store = ("--restartable", "--store", "webhdfs://nn.example:9870/yarnctl/checkpoints")
    has_parts(STREAMING[line], answered(line, wrapped(capsys, *store)))


@pytest.mark.parametrize("line", SPARK)
def test_wrap_of_spark(line, capsys, monkeypatch):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    has_parts(SPARK[line], answered(line, wrapped(capsys, "--spark")))


@pytest.mark.parametrize("line", FLINK)
def test_wrap_of_flink(line, capsys):
    has_parts(FLINK[line], answered(line, wrapped(capsys, "--flink")))


@pytest.mark.parametrize("line", ADMITTED)
def test_admission(line):
    def run(words: list[str]) -> str:
        kind = kind_of(words)
        job = FRAMEWORKS[kind].command_of(words)
        size = FRAMEWORKS[kind].most_containers(job.settings())
        return f"{kind}:{size} {shlex.join(job.words({'spark.a': 'b'}))}"

    has_parts(ADMITTED[line], answered(line, run))


@pytest.mark.parametrize(("kind", "line"), PLACED)
def test_placement(kind, line):
    def run(words: list[str]) -> str:
        file = f'name = "a"\n[{kind}]\ncommand = {words!r}\n'
        return shlex.join(
            read_application(file.encode(), "app.toml").sections[kind].job().words({"spark.a": "b"})
        )

    has_parts(PLACED[kind, line], answered(line, run))


@pytest.mark.parametrize("line", [line for line, parts in FLINK.items() if "use: " in parts[-1]])
def test_new_form_of_a_flink_command_is_accepted(line, capsys):
    """The error's remedy, carried out as printed."""
    new = answered(line, wrapped(capsys, "--flink")).partition("use: ")[2]
    assert "-Dyarn.tags=yarnctl-drain:" in answered(new, wrapped(capsys, "--flink"))


RECORDING = """#!/bin/sh
for word in "$0" "$@"; do printf '%s\\0' "$word"; done >"$RECORD"
grep SigIgn /proc/self/status
exit 7
"""
ODD_WORDS = [b"--", b"", b"a b", b"$(x)", b"\xff\n\t", "\u00e9".encode(), b"-e", b"'\"*"]


def run_exec(folder, options: list[str], program: str, words: list[bytes]):
    """Run ``yarnctl wrap OPTIONS --exec -- PROGRAM WORDS`` with a program that records its words."""
    path = folder / program
    path.write_text(RECORDING)
    path.chmod(0o755)
    code = "from yarnctl.cli import main; main()"
    environment = {"RECORD": str(folder / "record"), "PATH": f"{folder}:/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code, "wrap", *options, "--exec", "--", program, *words],
        capture_output=True, env=environment, check=False,
    )  # fmt: skip
    return done, (folder / "record").read_bytes().split(b"\0")[1:-1]


@pytest.mark.parametrize(
    ("options", "program", "words", "said"),
    [
        ([], "hive", [b"-e", b"select 1", *ODD_WORDS], "hive: is not a job of Hadoop streaming"),
        ([], "hadoop", [b"distcp", b"a", b"b", *ODD_WORDS], "hadoop distcp: is not a job"),
        ([], "hadoop", [b"jar", b"x.jar", b"com.ex.Main", *ODD_WORDS], "com.ex.Main: is not an option"),
        ([], "hadoop", [b"jar", b"s.jar", b"-mapper", b"m", b"-numReduceTasks", b"0"], "the job has no reduces"),
        ([], "hadoop", [b"jar", b"s.jar", b"-mapper", b"m"], "-reducer: is missing"),
        ([], "mapred", [b"streaming", b"-mapper", b"m", b"-reducer", b"r", b"stray\n"], "is not an option"),
        (["--restartable", "--store", "webhdfs://n:1/c"], "hadoop", [b"fs", b"-ls"], "hadoop fs: is not a job"),
        ([], "spark-submit", [b"--master", b"yarn", b"a.py"], "add --spark"),
        (["--spark"], "spark-submit", [b"--master", b"local", b"a.py", *ODD_WORDS], "--master local"),
        (["--spark"], "spark-submit", [b"--version"], "--version: does not submit"),
        (["--spark"], "spark-submit", [b"--unheard", b"1", b"a.py"], "--unheard: unknown option"),
        (["--spark"], "spark2-submit", [b"--master", b"yarn", b"a.py"], "Spark 2 cannot decommission"),
        (["--spark"], "spark-submit", [b"--master", b"yarn", b"--conf",
            b"spark.executor.decommission.forceKillTimeout=5s", b"a.py"], "kills executors"),
        (["--spark"], "spark-submit", [b"--master", b"yarn", b"--conf",
            b"spark.yarn.tags=yarnctl-drain:signal", b"a.py"], "wrapped already"),
        (["--flink"], "flink", [b"list", *ODD_WORDS], "flink list: is not a job of flink run"),
        (["--flink"], "flink", [b"run", b"-m", b"yarn-cluster", b"a.jar"], "-m yarn-cluster: is Flink's old form"),
    ],
)  # fmt: skip
def test_exec_runs_other_jobs_unchanged(tmp_path, options, program, words, said):
    done, recorded = run_exec(tmp_path, options, program, words)
    assert done.returncode == 7
    assert recorded == words
    (note,) = done.stderr.decode().splitlines()
    assert note.startswith("note: the command runs without yarnctl: ")
    assert said in note
    assert "without yarnctl wrap" not in note
    (ignored,) = [int(line.split()[1], 16) for line in done.stdout.decode().splitlines()]
    assert not ignored & 1 << 12  # SIGPIPE, which Python ignores


def test_exec_names_a_program_that_is_not_installed(capsys):
    for words, said in (
        (["no-such-hive", "-e"], "no-such-hive: program not found"),
        (["A=1", "hive"], "use env A=1 hive"),
    ):
        with pytest.raises(BadInput, match=said):
            wrap.main(args=["--exec", "--", *words], standalone_mode=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--store", "hdfs://nn:8020/c"], "--store hdfs"),
        (["--requests", "hdfs://nn:8020/r"], "--requests hdfs"),
        (["--save", "s"], "--save, --load"),
        (["--spark", "--fallback", "hdfs:///f"], "--fallback"),
        (["--restartable", "--group-fields", "2", "--store", "webhdfs://nn:1/c"], "--group-fields 2"),
    ],
)
def test_exec_rejects_its_own_options(options, said):
    """An administrator's mistake is no reason to run every job without yarnctl, silently."""
    job = (
        shlex.split(f"{JAR} {JOB}") if "--spark" not in options else ["spark-submit", "--master", "yarn", "a"]
    )
    with pytest.raises(BadInput, match=said):
        wrap.main(args=[*options, "--exec", "--", *job], standalone_mode=False)
