"""How much product code a framework needs of its own: lines of the files that no other framework needs.

``python -m tests.architecture.framework_size`` prints Flink's as JSON.

Law: a line counts if it has code: blank lines, comments and docstrings do not. A file of the product that
names the framework and is neither listed nor shared is an error, so that no line hides.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

from yarnctl.command_line import print_json

PRODUCT = Path(__file__).parents[2] / "yarnctl"
FLINK = (
    "attach/eligibility/flink_consent.py",
    "attach/observing/flink_workers.py",
    "attach/orders/worker_orders.py",
    "hadoop/job_manager.py",
    "hadoop/wire/flink_rest.py",
    "submitting/flink_leaving.py",
)
PLACING = ("submitting/flink.py",)
"""What submits applications of Flink through a gate: it was there before workers could leave."""
SHARED = (
    "attach/check/gathering.py", "attach/connection/connection.py", "attach/history/finished_applications.py",
    "attach/port.py", "cli/admit.py", "cli/runs.py", "cli/wrap.py", "daemon/admission/pool_files.py",
    "submitting/__init__.py", "submitting/application_files.py",
)  # fmt: skip
"""They name Flink among other frameworks."""
SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def code_lines(source: str) -> int:
    doc = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is not ...
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    found = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in SKIPPED and token.string.strip()
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(found - doc)


def sizes(root: Path = PRODUCT) -> dict[str, object]:
    """Return the lines of each file and in all, and the files that name Flink and are not listed."""
    texts = {str(path.relative_to(root)): path.read_text("utf-8") for path in sorted(root.rglob("*.py"))}
    named = [name for name, text in texts.items() if "flink" in text.lower()]
    lines = {name: code_lines(texts[name]) for name in (*FLINK, *PLACING)}
    return {
        "files": lines,
        "lines": sum(lines[name] for name in FLINK),
        "with_placing": sum(lines.values()),
        "deciding": sum(name.startswith("deciding/") for name in named),
        "unlisted": [name for name in named if name not in (*FLINK, *PLACING, *SHARED)],
    }


if __name__ == "__main__":
    print_json(sizes())
    sys.exit(0)
