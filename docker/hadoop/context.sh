#!/usr/bin/env bash
# Makes the build contexts of both images: docker/hadoop/context.sh [DIR [PYTHON]]
# DIR: the image with Hadoop (its jars, the configuration, what 'yarnctl wrap' needs); DIR/yarnctl: yarnctl's own,
# made by docker/emulator/context.sh. Without DIR: docker/hadoop/context, where the compose file looks for it.
# HADOOP=3.4.2|3.5.0|3.3.5 chooses the version (needs Java and Maven here, once); with HADOOP_IMAGE set, Hadoop
# comes from that image and no jars are fetched.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
project="$(cd "$here/../.." && pwd)"
context="${1:-$here/context}"
python="${2:-$project/.venv/bin/python}"
if [ -e "$context" ] && ! [ -f "$context/Dockerfile" ]; then
    echo "error: $context is there and no build context; name another folder" >&2
    exit 2
fi
rm -rf "$context"
"$here/../emulator/context.sh" "$context/yarnctl" "$python"

cp "$here/Dockerfile" "$context/Dockerfile"
printf 'yarnctl\n' >"$context/.dockerignore"
cp -R "$here/bin" "$context/bin"
cp "$context/yarnctl/bin/healthy" "$context/yarnctl/bin/yarnctl" "$context/bin/"
mkdir "$context/client"
cp -R "$context/yarnctl/site/click" "$context/yarnctl/site/yarnctl" "$context/client/"
cp -R "$here/conf" "$context/conf"
mkdir "$context/conf/dual-queue"
cp "$project/hadoop-conf/dual-queue/yarn-site.xml" "$context/conf/dual-queue/"
cp "$project/hadoop-conf/dual-queue/capacity-scheduler.xml" "$context/conf/"

lib="$context/hadoop/share/hadoop/common/lib"
mkdir -p "$lib" "$context/hadoop/bin" "$context/hadoop/share/hadoop/tools/lib"
if [ -z "${HADOOP_IMAGE:-}" ]; then
    jars="$(cd "$project" && "$python" "$here/jars.py" "${HADOOP:-3.4.2}")"
    cp "$jars"/*.jar "$lib/"
    mv "$lib"/hadoop-streaming-*.jar "$context/hadoop/share/hadoop/tools/lib/"
    for name in hadoop hdfs yarn mapred; do
        install -m 0755 "$here/hadoop.sh" "$context/hadoop/bin/$name"
    done
fi
chmod 0755 "$context"/bin/*
