"""The two engines: the plain kernel for any allocator, and the compiled twins.

Law: which one runs is nobody's business but the clock's; they give the same answers.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, get_args

from emulator.admission.plain.event_replay import replay
from emulator.admission.traces.trace import ReplayOutcome, Trace
from yarnctl.deciding.admission.mechanisms import SIZINGS
from yarnctl.deciding.admission.records import DEFAULT_CHOICES, Choices
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Engine = Literal["python", "compiled"]
ENGINES: tuple[str, ...] = get_args(Engine)


def is_compiled_there() -> bool:
    """Say whether the compiler is installed."""
    return find_spec("numba") is not None


def chosen(engine: str | None) -> Engine:
    """Return the engine to use: as asked, else the compiled one where it can be.

    Raises BadInput where it is asked for and cannot be.
    """
    if engine == "python":
        return "python"
    if is_compiled_there():
        return "compiled"
    if engine == "compiled":
        remedy = "pip install 'yarnctl[compiled]', or use --engine python"
        raise BadInput("--engine compiled", "numba is not installed", remedy)
    return "python"


def run(
    trace: Trace,
    deadline_ms: NDArray[np.int64],
    capacity: int,
    name: str,
    choices: Choices = DEFAULT_CHOICES,
    engine: Engine = "python",
) -> ReplayOutcome:
    """Replay under the allocator of that name."""
    if engine == "python":
        return replay(trace, deadline_ms, capacity, SIZINGS[name], choices)
    try:
        from emulator.admission.compiled import replay_compiled
    except ImportError as error:  # installed, and broken: numba minds which numpy there is
        remedy = "mend it, or use --engine python"
        raise BadInput("--engine compiled", f"numba cannot be loaded: {error}", remedy) from None

    return replay_compiled(trace, deadline_ms, capacity, name, choices)
