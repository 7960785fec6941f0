"""The allocators: one plain dictionary; each cites the lines of its algorithm.

Law: command lines, REST choices, experiments and property tests read this dictionary and
nothing else. Adding an allocator is its functions and one line here.
"""

from yarnctl.deciding.admission.allocators.allocator import Allocator, Memory
from yarnctl.deciding.admission.allocators.justice import JUSTICE
from yarnctl.deciding.admission.allocators.oracle import ORACLE
from yarnctl.deciding.admission.allocators.pythia import PYTHIA
from yarnctl.deciding.admission.allocators.sharing import NO_DROP_FS, REACTIVE_FS

ALLOCATORS: dict[str, Allocator] = {
    "no_drop_fs": NO_DROP_FS,
    "reactive_fs": REACTIVE_FS,
    "oracle": ORACLE,
    "pythia": PYTHIA,
    "justice": JUSTICE,
}

__all__ = ["ALLOCATORS", "Allocator", "Memory"]
