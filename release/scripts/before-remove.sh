#!/bin/sh
# dpkg says "remove" or "upgrade", rpm says how many versions stay.
set -e
case "$1" in remove|0) if [ -d /run/systemd/system ]; then systemctl disable --now yarnctl.service; fi ;; esac
find /opt/yarnctl/lib -name __pycache__ -type d -prune -exec rm -rf {} +
