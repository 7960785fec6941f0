"""All mechanisms in one dictionary, the only place that command lines, REST and experiments read.

Adding a mechanism is its functions, the types of its memory and its choices, and one line here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from yarnctl.deciding.admission.mechanisms.justice import JUSTICE, JusticeChoices, JusticeMemory
from yarnctl.deciding.admission.mechanisms.mrm import hold_market
from yarnctl.deciding.admission.mechanisms.mrm import learn as learn_work
from yarnctl.deciding.admission.mechanisms.oracle import (
    NO_DROP_FS,
    ORACLE,
    REACTIVE_FS,
    OracleChoices,
    SharerChoices,
)
from yarnctl.deciding.admission.mechanisms.orion import OrionChoices
from yarnctl.deciding.admission.mechanisms.placement_round import (
    LEAST_LOADED,
    ORION,
    LeastLoadedChoices,
    PlacementMemory,
)
from yarnctl.deciding.admission.mechanisms.promises import MrmChoices, MrmMemory, carry
from yarnctl.deciding.admission.mechanisms.pythia import PYTHIA, PythiaChoices, PythiaMemory
from yarnctl.deciding.admission.rounds import Mechanism
from yarnctl.deciding.admission.shared_round import hold_round
from yarnctl.deciding.admission.sizing import NoMemory, Sizing

Memory = NoMemory | PythiaMemory | JusticeMemory | MrmMemory | PlacementMemory
"""What a mechanism has learned, distinguished in the journal by the field ``mechanism``."""
OwnChoices = (
    SharerChoices
    | OracleChoices
    | PythiaChoices
    | JusticeChoices
    | MrmChoices
    | OrionChoices
    | LeastLoadedChoices
)
"""How a mechanism reads its paper, distinguished in the same way."""

SIZINGS: dict[str, Sizing[Any, Any]] = {
    each.name: each for each in (NO_DROP_FS, REACTIVE_FS, ORACLE, PYTHIA, JUSTICE)
}
"""The rules of those with the shared round; the replay and its compiled counterparts read them."""


def _shared(sizing: Sizing[Any, Any]) -> Mechanism:
    return Mechanism(
        name=sizing.name,
        paper=sizing.paper,
        choices=sizing.choices,
        begin=lambda choices: sizing.memory,
        learn=sizing.learn,
        round=partial(hold_round, sizing),
        needs_estimate=sizing.needs_estimate,
        learns=sizing.learns,
    )


MRM = Mechanism(
    name="mrm",
    paper="MRM Eq 13, section 5",
    choices=MrmChoices(),
    begin=lambda choices: MrmMemory(),
    learn=learn_work,
    round=hold_market,
    needs_estimate=True,
    needs_deadline=False,
    learns=True,
    carry=carry,
    sells=True,
)

MECHANISMS: dict[str, Mechanism] = {
    **{name: _shared(sizing) for name, sizing in SIZINGS.items()},
    MRM.name: MRM,
    ORION.name: ORION,
    LEAST_LOADED.name: LEAST_LOADED,
}
