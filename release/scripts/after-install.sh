#!/bin/sh
set -e
# The operator's token: systemd hands it to the daemon, and nobody else can read it.
[ -s /etc/yarnctl/token ] || (umask 077 && head -c 24 /dev/urandom | base64 >/etc/yarnctl/token)
"$(sed -n '1s/^#!\(.*\) -I$/\1/p' /opt/yarnctl/bin/yarnctl)" -m compileall -q /opt/yarnctl/lib || true
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart yarnctl.service
fi
