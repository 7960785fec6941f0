#!/usr/bin/env bash
# Makes the build context of the image: docker/emulator/context.sh [DIR [PYTHON]]
# DIR/site: yarnctl and what it needs, as wheels for the image's Python 3.11; DIR/bin: the programs.
# Without DIR: docker/emulator/context, where the compose file looks for it.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
project="$(cd "$here/../.." && pwd)"
context="${1:-$here/context}"
python="${2:-$project/.venv/bin/python}"
if [ -e "$context" ] && ! [ -f "$context/Dockerfile" ]; then
    echo "error: $context is there and no build context; name another folder" >&2
    exit 2
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "error: $python is no Python 3.11 or newer; run 'make setup', or name one: context.sh DIR PYTHON" >&2
    exit 2
fi
requirements="$("$python" "$here/requirements.py" "$project/pyproject.toml")"

rm -rf "$context"
mkdir -p "$context"
cp "$here/Dockerfile" "$context/Dockerfile"
cp -R "$here/bin" "$context/bin"
pip() { "$python" -m pip --disable-pip-version-check --quiet install --target "$context/site" "$@"; }
# shellcheck disable=SC2086  # one word a requirement
pip --python-version 3.11 --implementation cp --only-binary=:all: $requirements
# Published as source only, and pure Python; and the project itself, built into a wheel.
pip --upgrade --no-deps hdfs docopt "$project"
find "$context/site" -name __pycache__ -type d -prune -exec rm -rf {} +
rm -rf "$context/site/bin"
for program in yarnctl:yarnctl yarn-emulator:emulator; do
    printf '#!/usr/bin/python3\nfrom %s.cli import main\n\nmain()\n' "${program#*:}" >"$context/bin/${program%:*}"
done
chmod 0755 "$context"/bin/*
