#!/bin/sh
""":"
# sh reads these lines, Python takes them for its docstring: without a Python of at least 3.8 the
# original reducer runs as if this file were not there. -I: files shipped with the job shadow nothing.
trap '' QUIT
for python in python3 python; do
    if "$python" -ISc 'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1; then
        exec "$python" -IS "$0" "$@"
    fi
done
while [ "$#" -gt 0 ] && [ "$1" != -- ]; do shift; done
if [ "$#" -gt 0 ]; then shift; fi
case "$1" in
*/*) ;;
*) if [ -f "./$1" ] && [ -x "./$1" ]; then first="./$1"; shift; set -- "$first" "$@"; fi ;;
esac
exec "$@"
":
"""

# The task runner: wraps an unmodified Hadoop streaming reducer so that it can be suspended on demand.
#
#     -reducer "sh yarnctl_task.py --restartable [--group-fields N] [options] -- <original reducer>"
#
# Law: output is byte for byte that of an undisturbed run. What cannot be proven resumable is left
# alone: the original reducer runs untouched, or a checkpoint is set aside and the work starts from
# zero, or the attempt fails with the reason. Never a short output, never a wrong one.
# One file, Python >= 3.8, standard library only. Importing it has no side effects.
#
# WHAT THE SUBMITTER PROMISES. --restartable: the reducer keeps no state from one key group to the
# next and prints nothing at its start or end that depends on other groups. --group-fields N: the
# reducer groups by the first N fields of the key (default: all of them). Without --restartable
# nothing is ever suspended. A reducer with state also gives --save CMD and --load CMD: while the file
# named by YARNCTL_SUSPENDING exists, the reducer must keep its state at its end of input and print no
# summary; then the standard output of CMD (run by sh) is kept with the checkpoint, and before the
# reducer is started again it is the standard input of the other CMD.
#
# A REDUCER THAT STOPS READING EARLY and ends with 0 is judged as Hadoop without the runner does. There
# a write that breaks while reduce() runs fails the attempt, and the last flush of a buffer of 128 KiB
# may break. So such an end counts only if all that Java must have written before that flush fits into
# what the reducer has read plus what the pipe held that Java made. Otherwise the attempt fails (70),
# although Java met no broken pipe, because the runner had read ahead. What a reducer with a larger buffer
# of its own might have read beyond that is not granted: there plain Hadoop is a race. A reducer that
# fails must not end with 0 (a shell pipeline: set -o pipefail): on its last lines Java sees no failure.
#
# KEYS are bytes; a line ends at \n only. The key is the first N fields by the map-output separator
# (stream.map.output.field.separator), ended by the reduce-input separator (stream.reduce.input.field
# .separator), both one byte. Short, empty and non-UTF-8 keys are keys like others. Keys must arrive in
# the order of their bytes (Hadoop's default comparator); from the first that does not, the attempt
# cannot be suspended, and if it has already skipped by a checkpoint it fails and sets that one aside.
#
# STORE (--store or YARNCTL_STORE; file:///folder or webhdfs://host:port[,host:port]/folder), per task:
#   <job>/<task>/gen-000003-<attempt>.part           raw output since the generation before
#   <job>/<task>/gen-000003-<attempt>.state          what --save printed, if declared
#   <job>/<task>/gen-000003-<attempt>.manifest.json  written last, by rename; names are never used twice
#   <job>/<task>/gen-000003-<attempt>.manifest.json.aside-<attempt>   why this one is not to be used
#   <job>/<task>/answer-<order>-<attempt>.json       {"schema":1,"order","attempt","answer","generation",
#       "reason"}; answer is unchanged (generation is still valid, 0 is "nothing done yet"), refused
#       (this attempt goes on and cannot be suspended, or not now), completing (the input is at its end)
# In HDFS folders have mode 750, files 640, and their parent's group. So the group of the store's folder
# may read besides the owner: it should be one that only the daemon is in.
# A request that led to a new generation has no answer file: the manifest's "order" is the answer.
#
# REQUESTS (--requests or YARNCTL_REQUESTS, default <store>/requests), written by yarnctl, read only:
#   <job>/<attempt>/<order>.request.json  {"schema":1,"order","attempt"[,"generation"][,"hold_ms"]}
#   <job>/<attempt>/<order>.withdrawn     empty: go on at once
# SIGQUIT is the doorbell: requests are read. Until it rang once they are also read every --poll-ms.
# A signal waits for the node's heartbeat. So where requests are in HDFS the runner has a UDP port, too: a
# datagram "yarnctl SECRET" has requests read, and does nothing else; a wrong one is dropped. Port and secret
# are in the status line. --no-bell (YARNCTL_NO_BELL=1): no port is opened.
#
# SECURE CLUSTERS. Where the container was given delegation tokens (HADOOP_TOKEN_FILE_LOCATION), the one for
# the store's HDFS is sent with every call to it and identifies the user; no message contains it. A token is
# used only where its service is one of the store's hosts, or a name service that the job's configuration
# (dfs.nameservices, dfs.namenode.*-address.NAME.*) gives them, or where it is named by --token-service
# (YARNCTL_TOKEN_SERVICE: ha-hdfs:NAME or ADDRESS:PORT, as `hadoop dtutil print` shows it); where that does
# not settle it nothing is suspended. Over plain HTTP (webhdfs://) a token can be read on the way: it is sent
# there only with --token-over-http (YARNCTL_TOKEN_OVER_HTTP=1), and without that nothing is suspended.
# swebhdfs://host:port/folder is HTTPS; its authorities are in the PEM file --ca-file (YARNCTL_CA_FILE; it may
# come with -files), else those of the system.
#
# STATUS, a line that replaces the one before: yarnctl phase=P groups=N gen=N [done=B known=B all=0|1
# can=0|1 ran=MS base=B] [back=MS] [bell=P] [order=O] [why=TEXT] or yarnctl ckpt=K gen=N order=O ... where K is saved,
# unsure, unchanged, refused or completing.
# While it holds every line is phase=hold and names the order it holds for: of several the last.
# unsure: the answer to the manifest's RENAME was lost; the task holds and goes on as if it were there, for
# it may be. ran: how long this child has worked, from byte base on; back: how long a resumed attempt took
# until it was at new keys. why: why can=0, to the end. After " | " follows the reducer's own last status.
#
# MANIFEST, one JSON object, defined here and nowhere else (bytes are base64, counters' names are text
# with undecodable bytes as lone surrogates):
#   schema 1; tool; version; check (sha256 of the object without "check", keys sorted, no spaces)
#   job, task, attempt, container, past_containers [..], host, user, order, created_at_ms, took_ms
#   generation, previous_generation (0: none)
#   key_rule {fields, key_fields, map_separator, reduce_separator}; reducer [argv]
#   groups_done, keys_digest (sha256 over every distinct key followed by \n, in order), last_key
#   input_bytes (read up to the border), output_bytes; parts [{name, bytes, sha256}, ..] in order
#   state null or {name, bytes, sha256}; counters {group: {counter: total since the task's beginning}}

