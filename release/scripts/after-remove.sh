#!/bin/sh
# The account, its journal and the settings stay: docs/remove.md.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
