#!/bin/sh
# hadoop, hdfs, yarn, mapred: Hadoop's commands on a folder of jars, as far as this cluster needs them.
# They go by the same words and variables as those of an official image. Copied once for each name.
set -eu
tool="${1:-version}"
[ $# -eq 0 ] || shift
heap="${HADOOP_HEAPSIZE_MAX:-256}"
case "$heap" in *[0-9]) heap="${heap}m" ;; esac
streaming="$(echo "$HADOOP_HOME"/share/hadoop/tools/lib/hadoop-streaming-*.jar)"
case "$tool" in
    namenode) main=org.apache.hadoop.hdfs.server.namenode.NameNode ;;
    datanode) main=org.apache.hadoop.hdfs.server.datanode.DataNode ;;
    resourcemanager) main=org.apache.hadoop.yarn.server.resourcemanager.ResourceManager ;;
    nodemanager) main=org.apache.hadoop.yarn.server.nodemanager.NodeManager ;;
    historyserver) main=org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer ;;
    rmadmin) main=org.apache.hadoop.yarn.client.cli.RMAdminCLI ;;
    application) main=org.apache.hadoop.yarn.client.cli.ApplicationCLI; set -- "$tool" "$@" ;;
    job) main=org.apache.hadoop.mapred.JobClient ;;
    dfs|fs) main=org.apache.hadoop.fs.FsShell ;;
    dfsadmin) main=org.apache.hadoop.hdfs.tools.DFSAdmin ;;
    jar) main=org.apache.hadoop.util.RunJar ;;
    streaming) main=org.apache.hadoop.util.RunJar; set -- "$streaming" "$@" ;;
    version) main=org.apache.hadoop.util.VersionInfo ;;
    *) echo "error: $tool is not here; see $0" >&2; exit 2 ;;
esac
# shellcheck disable=SC2086  # options, separated by blanks
exec "$JAVA_HOME/bin/java" "-Xmx$heap" ${HADOOP_OPTS:-} \
    -cp "$HADOOP_CONF_DIR:$HADOOP_HOME/share/hadoop/common/lib/*:$HADOOP_HOME/share/hadoop/tools/lib/*" "$main" "$@"
