"""Steady: what makes one run of the tests like the next, and keeps one that goes astray in bounds.

Law: no example is remembered from one mutant to another, random tests draw the same examples each time, and
a mutant that loops for ever or eats memory is ended by the kernel: by the processor time that it has used,
which a busy machine does not change.
"""

from __future__ import annotations

import resource

from hypothesis import Phase, settings

MEMORY_BYTES = 6 << 30
PYTEST = (
    "-q",
    "-s",
    "-x",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-p",
    "no:schemathesis",
    "-p",
    "no:anyio",
)


def steady() -> None:
    """Let random tests draw the same examples each time; nothing found is kept or made smaller."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", database=None, derandomize=True, deadline=None, phases=phases)
    settings.load_profile(
        "mutants"
    )  # the profile that tests/thoroughness.py makes takes the rest from this one


def bound(cpu_s: int) -> None:
    """End this process when it has used so much processor time or memory."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime) + cpu_s
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 2))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
