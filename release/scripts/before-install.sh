#!/bin/sh
set -e
getent passwd yarnctl >/dev/null || useradd --system --user-group --home-dir /var/lib/yarnctl \
    --no-create-home --shell /usr/sbin/nologin yarnctl
