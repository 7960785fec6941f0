"""First asks: what starting jobs are going to ask for, by their last runs (``--ahead``).

Law: the loop never waits for it. Each job is asked about once, beside the loop, when it is first foreseen; an
answer counts from the look at which it is there. Nothing is told while ``may_foresee`` says no.
"""

from __future__ import annotations

from collections.abc import Callable

from yarnctl.attach.starting import Starting
from yarnctl.daemon.clerk import Answer, Clerk, History
from yarnctl.deciding.model import ContainerAsk

REMEMBERED_MAX = 1_000
"""Of so many jobs the answer is kept, the oldest go first: a job starts for a minute at most."""


class FirstAsks:
    """Asks ``clerk`` for the last run of each starting job. ``may_foresee`` may be set later."""

    def __init__(self, clerk: Clerk, may_foresee: Callable[[], bool] = lambda: True) -> None:
        self._clerk = clerk
        self._answers: dict[str, Answer] = {}
        self.may_foresee = may_foresee

    def of(self, job: Starting) -> ContainerAsk | None:
        """Return what a job will ask for first, None as long as that is not known or must not count."""
        if not self.may_foresee():
            return None
        if job.application not in self._answers:
            if len(self._answers) >= REMEMBERED_MAX:
                del self._answers[next(iter(self._answers))]
            self._answers[job.application] = self._clerk.ask(_question(job.name, job.user), of_a_request=True)
        value = self._answers[job.application].value
        return value if isinstance(value, ContainerAsk) else None

    def close(self) -> None:
        """Ask no more."""
        self._clerk.close()


def _question(name: str, user: str) -> Callable[[History], object]:
    return lambda history: history.first_ask(name, user)
