"""The compiler: numba, without what no kernel here needs.

Law: it is imported when a kernel is, and never before. Results are kept beside the source.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

LINEAR_ALGEBRA = "scipy.linalg"


def compiled(function: Function) -> Function:
    """Compile a function, keep the result beside its source, and run it without the interpreter's lock.

    Where nothing can be kept (neither the source's folder nor the user's can be written), every
    process compiles for itself.
    """
    numba = _numba()
    result: Function
    try:
        result = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        result = numba.njit(nogil=True)(function)
    return result


@cache
def _numba() -> Any:
    """Return numba; where scipy is installed, it must not be loaded for its linear algebra.

    numba looks for it when it first compiles anything, which takes longer than most replays.
    """
    numba = importlib.import_module("numba")
    absent = LINEAR_ALGEBRA not in sys.modules
    if absent:
        sys.modules[LINEAR_ALGEBRA] = None  # type: ignore[assignment]
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        if absent:
            del sys.modules[LINEAR_ALGEBRA]
    return numba
