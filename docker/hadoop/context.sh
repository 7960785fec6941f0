#!/usr/bin/env bash
# Makes the build context of the image with Hadoop (its jars, the configuration, what 'yarnctl wrap' needs):
# docker/hadoop/context.sh [DIR [PYTHON]]. Without DIR: this folder, where compose.yaml looks for it.
# HADOOP=3.4.2|3.5.0|3.3.5 chooses the version (needs Java and Maven here, once); with HADOOP_IMAGE set, Hadoop
# comes from that image and no jars are fetched.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
project="$(cd "$here/../.." && pwd)"
folder="${1:-$here}"
context="$folder/context"
python="${2:-$project/.venv/bin/python}"
if [ -e "$context" ] && ! [ -d "$context/client" ]; then
    echo "error: $context is there and no build context; name another folder" >&2
    exit 2
fi
rm -rf "$context"
mkdir -p "$context"
[ "$folder" = "$here" ] || cp "$here/Dockerfile" "$here/.dockerignore" "$folder/"
cp -R "$here/bin" "$context/bin"
cp "$here/../emulator/bin/healthy" "$context/bin/"
printf '#!/usr/bin/python3\nfrom yarnctl.cli import main\n\nmain()\n' >"$context/bin/yarnctl"
"$python" -m pip --disable-pip-version-check --quiet install --no-deps --target "$context/client" click "$project"
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
