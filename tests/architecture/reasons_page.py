"""``docs/reference/reasons.md``, generated from the reasons' classes.

python -m tests.architecture.reasons_page           print the page
python -m tests.architecture.reasons_page --write   write it; tests/unit/test_reasons.py compares it
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, get_args

from yarnctl.deciding.reasons.demand import TriggerReason
from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.reasons.orders import ChangeReason, MoveReason
from yarnctl.deciding.reasons.outcomes import OwnOutcome
from yarnctl.deciding.reasons.placements import PlacementReason
from yarnctl.deciding.reasons.rooting import Reason
from yarnctl.deciding.reasons.verdicts import ClosedReason, GateReason, LessonReason, PlanReason
from yarnctl.deciding.reasons.waiting_reasons import OwnWaitingReason
from yarnctl.deciding.releaser import REASONS, REMEDIES
from yarnctl.deciding.waiting_verdicts import OWN_CAUSES
from yarnctl.journal.rendering import FIELD, SECTION

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "reasons.md"

SECTIONS: dict[str, Any] = {
    "Why yarnctl does not act, or acts": ModeReason,
    "Why containers are freed for an application, or not": TriggerReason,
    "Why a production application waits": OwnWaitingReason,
    "Why an application cannot be suspended or drained": EligibilityReason,
    "Why an order settled or was transferred": MoveReason,
    "Why an action was refused or not sent": OwnOutcome,
    "Why a setting is lowered or restored": ChangeReason,
    "Why an admission has its verdict": PlanReason,
    "Why an admission has ended": ClosedReason,
    "Why a placement option was not chosen": PlacementReason,
    "Why admission is paused": GateReason,
    "Why yarnctl learned nothing from a finished job": LessonReason,
}
"""Each union of reasons by its heading; an action can also have a reason of the first and fourth section."""

HEAD = """\
# Reasons

yarnctl gives a reason for what it does and does not do: in `yarnctl explain`, on the page, in the API
(`reason.code`, `reason.text`), in the log and in the journal. Programs compare codes; sentences can change.

`{name}` is a value. `[...]` appears only where it applies. `[one / other]` is one of the two.
This page is generated from the program; do not edit it.
"""


def shown(template: str) -> str:
    def section(found: re.Match[str]) -> str:
        _, _, one, other = found.groups()
        return f"[{one} / {other}]" if other else f"[{one}]"

    def field(found: re.Match[str]) -> str:
        name, unit = found.groups()
        return f"{{number of {name}}}" if unit == "number" else f"{{{name}}}"

    return FIELD.sub(field, SECTION.sub(section, template))


def sentence(kind: type[Reason]) -> str:
    """Return the sentence of a reason; of one that is foreign text, with what that is."""
    about = f" ({(kind.__doc__ or '').rstrip('.')})" if FIELD.fullmatch(kind.sentence) else ""
    return shown(kind.sentence) + about


def reasons_of(union: Any) -> list[type[Reason]]:
    return list(get_args(union))


def table(rows: list[tuple[str, str, str]]) -> list[str]:
    """Return a table of (code, sentence, remedy); the last column only if it has a text."""
    width = 3 if any(remedy for _, _, remedy in rows) else 2
    head = ("code", "sentence", "what to do")[:width]
    return [
        f"| {' | '.join(head)} |",
        "|" + "---|" * width,
        *(f"| {' | '.join((f'`{code}`', *rest)[:width])} |" for code, *rest in rows),
    ]


def page() -> str:
    lines = [HEAD]
    for heading, union in SECTIONS.items():
        rows = [
            (str(kind.__struct_config__.tag), sentence(kind), shown(kind.remedy))
            for kind in reasons_of(union)
        ]
        lines += [f"## {heading}", "", *table(rows), ""]
    causes = [(code, meaning, REMEDIES.get(code, "")) for code, meaning in {**REASONS, **OWN_CAUSES}.items()]
    lines += ["## Why a job or task was not chosen", "", *table(causes)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
