#!/bin/sh
# Installs yarnctl from the wheels beside this file: install [FOLDER] (/opt/yarnctl). PYTHON chooses the Python.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
folder="${1:-/opt/yarnctl}"
python="$(basename "$here")"
python="${python#yarnctl-*-}"
"${PYTHON:-${python%-wheels}}" -m venv "$folder"
"$folder/bin/pip" --disable-pip-version-check --quiet install --no-index --upgrade "$here"/wheels/*.whl
"$folder/bin/yarnctl" --version
