"""The unit: its syntax, and how much a broken daemon could reach, by systemd's own programs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.release.playing import UNIT, settings

EXPOSURE_MAX = 3.0


@pytest.fixture(autouse=True)
def analyzer() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed (Debian: apt install systemd)")


def exposure(unit: Path) -> float:
    words = ("systemd-analyze", "security", "--offline=true", "--no-pager", str(unit))
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", told)
    assert found is not None, told
    return float(found[1])


def test_exposure_is_low(tmp_path: Path) -> None:
    assert exposure(UNIT) <= EXPOSURE_MAX
    open_unit = tmp_path / "yarnctl.service"
    kept = [line for line in UNIT.read_text().splitlines() if not re.match("Capability|SystemCall", line)]
    open_unit.write_text("\n".join(kept))
    assert exposure(open_unit) > EXPOSURE_MAX


def test_unit_has_no_unknown_setting(tmp_path: Path) -> None:
    """``verify`` wants the programs to exist: here they are another's."""
    unit = tmp_path / "yarnctl.service"
    kept = [line for line in UNIT.read_text().splitlines() if not line.startswith("Documentation=")]
    unit.write_text("\n".join(kept).replace("/opt/yarnctl/bin/yarnctl", "/bin/true"))
    told = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert (told.returncode, told.stderr.replace("SystemCallFilter", "")) == (0, "")


def test_certificates_are_no_credentials_and_the_process_metrics_stay() -> None:
    found = settings()
    assert found["LoadCredential"] == ["token:/etc/yarnctl/token"]
    assert "ProcSubset" not in found
