#!/usr/bin/env bash
# Makes the build context of the image: docker/emulator/context.sh DIR [PYTHON]
# DIR/site: yarnctl and what it needs, as wheels for the image's Python 3.11; DIR/bin: the two programs.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
project="$(cd "$here/../.." && pwd)"
context="${1:?usage: context.sh DIR [PYTHON]}"
python="${2:-$project/.venv/bin/python}"

rm -rf "$context"
mkdir -p "$context/bin"
"$python" -m pip --disable-pip-version-check --quiet install --target "$context/site" \
    --python-version 3.11 --implementation cp --only-binary=:all: \
    $("$python" "$here/requirements.py" "$project/pyproject.toml")
# Published as source only, and pure Python; and the project itself, built into a wheel.
"$python" -m pip --disable-pip-version-check --quiet install --target "$context/site" --upgrade --no-deps \
    hdfs docopt "$project"
find "$context/site" -name __pycache__ -type d -prune -exec rm -rf {} +
rm -rf "$context/site/bin"
for program in yarnctl:yarnctl yarn-emulator:emulator; do
    printf '#!/usr/bin/python3\nfrom %s.cli import main\n\nmain()\n' "${program#*:}" >"$context/bin/${program%:*}"
    chmod 0755 "$context/bin/${program%:*}"
done
cp "$here/Dockerfile" "$context/Dockerfile"
