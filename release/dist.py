"""Make a release: ``python -m release.dist [FOLDER [EXTRAS]]`` (``make dist``); FOLDER: ``dist``.

Each file is made from the wheel, and the wheel from this tree. Two builds by the same Python give the same
bytes: every time in them is ``SOURCE_DATE_EPOCH``, and ``constraints.txt`` has the version of each package.
What holds compiled packages is for the minor version of Python and for the processor of this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from release import packages
from release.shared_files import source_epoch_s, write

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "release" / "constraints.txt"
INSTALLER = ROOT / "release" / "install.sh"
ALWAYS = "ha"
"""The extra in each file with packages: a second daemon is decided on later, on a host without a network."""


class Release(NamedTuple):
    """What is made: ``folder`` receives the files; ``python``: the program's name with its minor version.

    ``extras`` of yarnctl are in each file with packages, separated by commas: ``ha,kerberos``.
    """

    folder: Path
    version: str
    python: str
    epoch_s: int
    extras: str = ALWAYS

    def extended(self, name: str) -> str:
        """Return a name of yarnctl with the extras, as pip reads it."""
        return f"{name}[{self.extras}]"


def main() -> None:
    """Make all files of a release, and print their names."""
    given = iter(sys.argv[1:])
    release = this_release(Path(next(given, "dist")).absolute(), next(given, ""))
    release.folder.mkdir(parents=True, exist_ok=True)
    wheel, archive = make_archives(release)
    with tempfile.TemporaryDirectory(prefix="yarnctl-dist-") as name:
        wheelhouse = make_wheelhouse(release, wheel, Path(name, "wheelhouse"))
        made = [wheel, archive, pack_wheelhouse(release, wheelhouse), make_one_file(release, wheelhouse)]
        payload = install_payload(release, wheelhouse, Path(name, "payload"))
        made += packages.make(
            payload, release.version, release.python, release.epoch_s, release.folder, release.extras
        )
    sys.stdout.writelines(f"{one}\n" for one in made)


def this_release(folder: Path, extras: str = "") -> Release:
    """Return the release of this tree, by this Python; ``extras``: those besides ``ALWAYS``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packed = ",".join(filter(None, (ALWAYS, extras)))
    return Release(folder, project["version"], python, source_epoch_s(), packed)


def make_archives(release: Release, tree: Path = ROOT) -> tuple[Path, Path]:
    """Make wheel and source archive; a wheel from the archive alone has the same bytes."""
    if tree == ROOT:
        write(release.version, release.epoch_s)
    words = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d")
    _run((*words, str(release.folder)), release, cwd=tree)
    base = f"yarnctl-{release.version}"
    return release.folder / f"{base}-py3-none-any.whl", release.folder / f"{base}.tar.gz"


def make_wheelhouse(release: Release, wheel: Path, folder: Path) -> Path:
    """Collect the wheels of yarnctl and of all that it needs; those published as sources are built."""
    words = (*pip("wheel"), "--wheel-dir", str(folder), "--constraint", str(CONSTRAINTS))
    _run((*words, release.extended(str(wheel))), release)
    return folder


def pack_wheelhouse(release: Release, wheelhouse: Path) -> Path:
    """Pack the wheelhouse with its installer into one archive."""
    name = f"yarnctl-{release.version}-{release.python}-wheels"
    target = release.folder / f"{name}.tar"
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in [INSTALLER, *sorted(wheelhouse.iterdir())]:
            entry = tarfile.TarInfo(f"{name}/{'install' if path == INSTALLER else f'wheels/{path.name}'}")
            entry.size, entry.mtime = path.stat().st_size, release.epoch_s
            entry.mode = 0o755 if path == INSTALLER else 0o644
            with path.open("rb") as data:
                archive.addfile(entry, data)
    return target


def make_one_file(release: Release, wheelhouse: Path) -> Path:
    """Make the program ``yarnctl`` as one file that needs only a Python on its host."""
    target = release.folder / f"yarnctl-{release.version}-{release.python}.pyz"
    words = [sys.executable, "-m", "shiv", "--console-script", "yarnctl", "--output-file", str(target)]
    words += ["--reproducible", "--python", f"/usr/bin/env {release.python}", "--quiet", "--no-compile"]
    _run([*words, "--no-index", "--find-links", str(wheelhouse), release.extended("yarnctl")], release)
    return target


def install_payload(release: Release, wheelhouse: Path, folder: Path) -> Path:
    """Install yarnctl into ``folder/lib`` without bytecode, and its shared files into ``folder/share``."""
    words = (*pip("install"), "--no-compile", "--no-index", "--find-links", str(wheelhouse))
    _run((*words, "--target", str(folder / "lib"), release.extended("yarnctl")), release)
    shutil.rmtree(folder / "lib" / "bin")
    (folder / "lib" / "share").rename(folder / "share")
    return folder


def pip(command: str) -> tuple[str, ...]:
    """Return the words of a command of pip."""
    return (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", command)


def _run(words: Iterable[str], release: Release, cwd: Path = ROOT) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(release.epoch_s), "PYTHONHASHSEED": "0"}
    subprocess.run(list(words), env=environment, cwd=cwd, check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
