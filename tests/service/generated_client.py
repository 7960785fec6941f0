"""A client that a generator makes of the OpenAPI document."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.unit.service.played import busy
from yarnctl.service.app import make_app

PACKAGE = "generated_yarnctl"


@cache
def document() -> dict[str, Any]:
    return make_app(busy).openapi()


def operations() -> dict[str, tuple[str, str]]:
    """Return the method and the path of each operation, by its id."""
    paths: Mapping[str, Mapping[str, Any]] = document()["paths"]
    return {
        each["operationId"]: (method.upper(), path)
        for path, methods in paths.items()
        for method, each in methods.items()
    }


def generate(folder: Path) -> None:
    """Make the client below ``folder``; a warning of the generator is an error."""
    source = folder / "openapi.json"
    source.write_text(json.dumps(document()))
    where = ["--path", str(source), "--output-path", str(folder / PACKAGE), "--meta", "none"]
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning", *where]
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # it runs ruff
    done = subprocess.run(command, capture_output=True, text=True, env=tools, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def modules(folder: Path) -> dict[str, ModuleType]:
    """Return the module of each operation of a client below ``folder``, by the operation's id."""
    sys.path.insert(0, str(folder))
    try:
        files = sorted((folder / PACKAGE / "api").glob("*/*.py"))
        found = (file.relative_to(folder).with_suffix("") for file in files if file.stem != "__init__")
        return {place.name: importlib.import_module(".".join(place.parts)) for place in found}
    finally:
        sys.path.remove(str(folder))
