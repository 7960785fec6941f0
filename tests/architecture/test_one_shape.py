"""One shape a thing on the wire: the service and the command line have no struct of an answer of their own.

Law: what the API answers is declared in ``yarnctl/api``. In the command line no class describes data that is
decoded; in the service only what callers send (``asked``, ``paging``) and the file of tokens is described.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHAPES = ("Struct", "BaseModel", "TypedDict")
ALLOWED = {
    "yarnctl/service/routes/admissions.py": "BaseModel",
    "yarnctl/service/routes/health.py": "BaseModel",
    "yarnctl/service/routes/market.py": "BaseModel",
    "yarnctl/service/routes/placement.py": "BaseModel",
    "yarnctl/service/routes/questions.py": "BaseModel",
    "yarnctl/service/answers/paging.py": "BaseModel",
    "yarnctl/service/security/tokens.py": "Struct",
}


def shapes(source: str) -> dict[str, str]:
    """Return the classes of a module that describe data, with the class each is made of."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            for made_of in map(ast.unparse, node.bases):
                last = made_of.rpartition(".")[2]
                kind = last if last in SHAPES else found.get(last)
                if kind is not None:
                    found[node.name] = kind
    return found


def shapes_beside(root: Path) -> list[str]:
    """Return the shapes in the service and the command line that stand beside those of the API."""
    modules = sorted(path for part in ("service", "cli") for path in (root / "yarnctl" / part).rglob("*.py"))
    return [
        f"{path.relative_to(root)}: {name}"
        for path in modules
        for name, kind in shapes(path.read_text(encoding="utf-8")).items()
        if ALLOWED.get(path.relative_to(root).as_posix()) != kind
    ]


def test_service_and_command_line_have_no_shape_of_their_own() -> None:
    assert shapes_beside(ROOT) == []


def test_there_is_one_page() -> None:
    pages = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "yarnctl").rglob("*.py"))
        for name in shapes(path.read_text(encoding="utf-8"))
        if name == "Page"
    ]
    assert pages == ["yarnctl/api/paged.py: Page"]


@pytest.mark.parametrize(
    ("where", "planted"),
    [
        ("cli/apps.py", "class Page(msgspec.Struct):\n    total: int\n"),
        ("cli/apps.py", "class Row(Struct, frozen=True):\n    name: str\n"),
        ("service/answers/from_view.py", "class Model(BaseModel):\n    name: str\n"),
        ("service/routes/admissions.py", "class Asked(msgspec.Struct):\n    name: str\n"),
        ("service/answers/from_view.py", "class Row(TypedDict):\n    name: str\n"),
    ],
)
def test_a_second_shape_is_found(tmp_path: Path, where: str, planted: str) -> None:
    path = tmp_path / "yarnctl" / where
    path.parent.mkdir(parents=True)
    path.write_text(planted)
    assert len(shapes_beside(tmp_path)) == 1


def test_deciding_names_no_framework() -> None:
    modules = (ROOT / "yarnctl" / "deciding").rglob("*.py")
    assert [str(path) for path in modules if "flink" in path.read_text(encoding="utf-8").lower()] == []
