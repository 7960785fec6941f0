"""What the containers do before anybody has told them anything: yarnctl observes on a real Hadoop."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

DOCKER = Path(__file__).parents[2] / "docker"
START = DOCKER / "emulator" / "bin" / "yarnctl-daemon"


def test_the_real_hadoop_s_yarnctl_acts_only_where_that_is_set() -> None:
    _, _, text = (DOCKER.parent / "compose.yaml").read_text().partition("--- a real Hadoop")
    words = "\n".join(line.partition(" #")[0] for line in text.splitlines() if not line.startswith("#"))
    assert "enforce" not in words
    assert re.search(r"- \$\{MODE:-\}\s*$", words, re.MULTILINE)


@pytest.mark.parametrize(
    ("mode", "given"), [("", []), ("--enforce", ["--enforce"]), ("--quiet", ["--quiet"])]
)
def test_an_empty_setting_is_no_word_and_the_token_is_its_owner_s(
    tmp_path: Path, mode: str, given: list[str]
) -> None:
    (tmp_path / "yarnctl").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "yarnctl").chmod(0o755)
    told = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "YARNCTL_STATE": str(tmp_path)}
    words = ["sh", str(START), "--rm=http://rm:8088", mode, "--in-flight-least=4"]
    said = subprocess.run(words, env=told, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[-2 - len(given) :] == ["--rm=http://rm:8088", *given, "--in-flight-least=4"]
    assert "" not in said
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert len((tmp_path / "token").read_text().strip()) >= 16
