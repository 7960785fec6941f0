"""The packages ``deb`` and ``rpm``, by nfpm: yarnctl below /opt, with account, state directory and unit.

nfpm 2.45.2 is built from the Go module proxy when it is missing; later versions need modules that it lacks.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NFPM = "github.com/goreleaser/nfpm/v2/cmd/nfpm"
NFPM_VERSION = "2.45.2"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
SCRIPTS = Path(__file__).parent / "scripts"
PREFIX = "/opt/yarnctl"
LIBRARIES = {"kerberos": ("libgssapi-krb5-2", "krb5-libs")}
"""What an extra needs of the system, as deb and as rpm."""
PROGRAM = """#!/usr/bin/{python} -I
import sys

sys.path.insert(0, "{prefix}/lib")
from yarnctl.cli import main

main()
"""


def make(
    payload: Path, version: str, python: str, epoch_s: int, folder: Path, extras: str = ""
) -> list[Path]:
    """Make both packages of ``payload`` (its ``lib`` and ``share``) into a folder; return their paths."""
    program = payload / "yarnctl"
    program.write_text(PROGRAM.format(python=python, prefix=PREFIX), encoding="utf-8")
    settings = payload / "nfpm.json"
    settings.write_text(
        json.dumps(nfpm_settings(payload, version, python, epoch_s, extras)), encoding="utf-8"
    )
    nfpm = str(found_nfpm())
    made = []
    for kind in ("deb", "rpm"):
        words = (nfpm, "package", "--packager", kind, "--config", str(settings), "--target", str(folder))
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        made.append(Path(done.stdout.rpartition("created package: ")[2].strip()))
    return made


def nfpm_settings(payload: Path, version: str, python: str, epoch_s: int, extras: str = "") -> dict[str, Any]:
    """Return nfpm's settings; JSON is YAML as well."""
    needed = [LIBRARIES[extra] for extra in extras.split(",") if extra in LIBRARIES]
    mtime = datetime.fromtimestamp(epoch_s, UTC).isoformat()
    share = payload / "share"
    contents = [
        tree(payload / "lib", f"{PREFIX}/lib"),
        file(payload / "yarnctl", f"{PREFIX}/bin/yarnctl", 0o755),
        {"type": "symlink", "src": f"{PREFIX}/bin/yarnctl", "dst": "/usr/bin/yarnctl"},
        file(share / "systemd/system/yarnctl.service", "/usr/lib/systemd/system/yarnctl.service"),
        file(share / "bash-completion/completions/yarnctl", "/usr/share/bash-completion/completions/yarnctl"),
        file(
            share / "fish/vendor_completions.d/yarnctl.fish",
            "/usr/share/fish/vendor_completions.d/yarnctl.fish",
        ),
        file(share / "zsh/vendor-completions/_yarnctl", "/usr/share/zsh/vendor-completions/_yarnctl"),
        tree(share / "doc/yarnctl", "/usr/share/doc/yarnctl"),
        *(
            file(page, f"/usr/share/man/man1/{page.name}")
            for page in sorted((share / "man/man1").glob("yarnctl*"))
        ),
        empty_folder("/etc/yarnctl", "root", 0o755),
        empty_folder("/var/lib/yarnctl", "yarnctl", 0o700),
    ]
    return {
        "name": "yarnctl",
        "version": version,
        "release": "1",
        "arch": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "section": "admin",
        "maintainer": "yarnctl",
        "license": "Apache-2.0",
        "description": "Checkpoint preemption for MapReduce, Spark and Flink on an unmodified Hadoop 3 YARN",
        "depends": [python, *(deb for deb, _ in needed)],
        "mtime": mtime,
        "contents": [
            {**each, "file_info": {"mtime": mtime, **each.get("file_info", {})}} for each in contents
        ],
        "scripts": {
            "preinstall": str(SCRIPTS / "before-install.sh"),
            "postinstall": str(SCRIPTS / "after-install.sh"),
            "preremove": str(SCRIPTS / "before-remove.sh"),
            "postremove": str(SCRIPTS / "after-remove.sh"),
        },
        # The name of a package differs between distributions of rpm, the path does not.
        "overrides": {
            "rpm": {"depends": [f"/usr/bin/{python}", "shadow-utils", *(rpm for _, rpm in needed)]}
        },
        "rpm": {"buildhost": "build", "group": "System Environment/Daemons"},
    }


def file(source: Path, target: str, mode: int = 0o644) -> dict[str, Any]:
    """Return the entry of one file."""
    return {"src": str(source), "dst": target, "file_info": {"mode": mode}}


def tree(source: Path, target: str) -> dict[str, Any]:
    """Return the entry of a folder with all that is in it."""
    return {"type": "tree", "src": str(source), "dst": target}


def empty_folder(target: str, owner: str, mode: int) -> dict[str, Any]:
    """Return the entry of an empty folder."""
    return {"type": "dir", "dst": target, "file_info": {"owner": owner, "group": owner, "mode": mode}}


def found_nfpm() -> Path:
    """Return nfpm of the wanted version; it is built into the user's cache if it is missing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "yarnctl", f"nfpm-{NFPM_VERSION}")
    program = cache / "nfpm"
    if not program.exists():
        if shutil.which("go") is None:
            sys.exit(f"error: nfpm {NFPM_VERSION}: no {program}, and no Go to build it; install Go 1.25")
        words = ("go", "install", f"{NFPM}@v{NFPM_VERSION}")
        subprocess.run(words, env={**os.environ, "GOBIN": str(cache)}, check=True)
    return program
