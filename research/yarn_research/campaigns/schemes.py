"""The schemes that are compared: what the ResourceManager is told, and whether yarnctl is attached.

Law: the queues are those of the paper's Fig 4 (facts/natjam.md, section 7): caps give production a quarter;
whoever takes room back (YARN itself, or yarnctl) starts from queues of 95 and 5 percent, in which every
freed container is production's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

ARRIVES_S = 46.0
"""One third of what research takes alone (about 138 s)."""

Changes = Mapping[str, Mapping[str, str | None]]

QUEUE = "yarn.scheduler.capacity.root."
PREEMPTION = "yarn.resourcemanager.monitor.capacity.preemption."
TUNED = {
    f"{PREEMPTION}monitoring_interval": "1000",
    f"{PREEMPTION}max_wait_before_kill": "1000",
    f"{PREEMPTION}total_preemption_per_round": "1.0",
    f"{PREEMPTION}natural_termination_factor": "1.0",
}
"""YARN's preemption as an administrator would tune it for speed (facts/hadoop.md, sections 6 and 11)."""


MUTABLE = {"yarn.scheduler.configuration.store.class": "memory"}
"""A scheduler whose queues can be changed by REST, which ``--cap-queue`` needs."""


FOUR = ("--in-flight-least", "4")
"""Up to four tasks may be suspending at once; as shipped it is a tenth of research's containers, here one."""


class Scheme(NamedTuple):
    """``options`` are all those of ``yarnctl run --enforce`` that change what it does, if ``attached``.

    ``with_production`` and ``with_research`` say which jobs run. ``arrives_s``: how long after research
    production is submitted.
    """

    name: str
    production: int
    research: int
    research_most: int = 100
    monitored: bool = False
    settings: Mapping[str, str] = {}
    attached: bool = False
    options: tuple[str, ...] = ()
    with_production: bool = True
    with_research: bool = True
    arrives_s: float = ARRIVES_S

    def option(self, name: str, absent: str) -> str:
        """Return the value that follows an option of ``yarnctl run``."""
        return self.options[self.options.index(name) + 1] if name in self.options else absent

    def changes(self) -> Changes:
        """Return what the ResourceManager's files must say."""
        production_most = 100 if self.research_most == 100 else 100 - self.research_most
        preemptable = str(not self.monitored).lower()
        return {
            "capacity-scheduler": {
                f"{QUEUE}production.capacity": str(self.production),
                f"{QUEUE}research.capacity": str(self.research),
                f"{QUEUE}production.maximum-capacity": str(production_most),
                f"{QUEUE}research.maximum-capacity": str(self.research_most),
                f"{QUEUE}research.disable_preemption": preemptable,
                f"{QUEUE}production.user-limit-factor": "4",
                f"{QUEUE}research.user-limit-factor": "40",
            },
            "yarn-site": {
                "yarn.resourcemanager.scheduler.monitor.enable": str(self.monitored).lower(),
                **dict.fromkeys((*TUNED, *MUTABLE)),
                **self.settings,
            },
        }


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("production-alone", 95, 5, with_research=False),
        Scheme("research-alone", 95, 5, with_production=False),
        Scheme("hard-cap", 25, 75, research_most=75),
        Scheme("soft-cap", 25, 75),
        Scheme("yarn-defaults", 95, 5, monitored=True),
        Scheme("yarn-tuned", 95, 5, monitored=True, settings=TUNED),
        Scheme(
            "yarnctl",
            95,
            5,
            settings=MUTABLE,
            attached=True,
            options=(*FOUR, "--cap-queue", "--predicted-demand", "4"),
        ),
        Scheme("yarnctl-as-shipped", 95, 5, attached=True),
        Scheme("yarnctl-no-ahead", 95, 5, settings=MUTABLE, attached=True, options=(*FOUR, "--cap-queue")),
        Scheme("yarnctl-no-hold", 95, 5, attached=True, options=FOUR),
    )
}
"""The comparison of ``make bench-hadoop``."""

VARIANTS = {
    scheme.name: scheme
    for scheme in (
        SCHEMES["yarnctl"]._replace(
            name="yarnctl-lrt", options=(*FOUR, "--cap-queue", "--task-policy", "LRT")
        ),
        SCHEMES["yarnctl-no-ahead"]._replace(name="yarnctl-early", arrives_s=30.0),
        SCHEMES["yarn-tuned"]._replace(name="yarn-tuned-early", arrives_s=30.0),
        SCHEMES["soft-cap"]._replace(name="soft-cap-late", arrives_s=92.0),
        Scheme("hard-cap-half", 50, 50, research_most=50),
    )
}
"""Run only where they are named (``--schemes``): more for the emulator to predict (``fidelity.py``)."""

ALL = {**SCHEMES, **VARIANTS}
