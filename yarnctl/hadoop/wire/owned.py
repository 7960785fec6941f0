"""Types of values that a job's owner writes into an answer: bounded numbers, and valid text.

A number outside its range makes the whole answer unreadable, so that no sum or product of such numbers needs
a check later. Instants and spans are milliseconds.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

INSTANT_MAX_MS = 253_402_300_799_999  # The end of the year 9999
SPAN_MAX_MS = 3_650 * 86_400_000  # Ten years
COUNT_MAX = 2**31 - 1
TOTAL_MAX = 2**53  # Bytes, or time summed over tasks: what a JSON number holds exactly
NAME_MAX = 200

InstantMs = Annotated[int, Meta(ge=-1, le=INSTANT_MAX_MS)]  # 0 and -1: has not happened
SpanMs = Annotated[float, Meta(ge=0, le=SPAN_MAX_MS)]
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
SignedCount = Annotated[int, Meta(ge=-COUNT_MAX, le=COUNT_MAX)]
"""A count that is negative where the driver has missed events of its own."""
Total = Annotated[int, Meta(ge=0, le=TOTAL_MAX)]
SignedTotal = Annotated[int, Meta(ge=-TOTAL_MAX, le=TOTAL_MAX)]
Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Percent = Annotated[float, Meta(ge=-1, le=100)]  # -1: not known
Parallel = Annotated[int, Meta(ge=1, le=COUNT_MAX)]
Name = Annotated[str, Meta(max_length=NAME_MAX)]
