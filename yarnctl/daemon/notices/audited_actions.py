"""The audit line of an action on the cluster."""

from __future__ import annotations

from yarnctl.audit import audit_line
from yarnctl.deciding.model import Accepted
from yarnctl.deciding.records import Performed
from yarnctl.journal.explaining.story import OrderStory
from yarnctl.journal.rendering import said


def action_line(account: str, performed: Performed, story: OrderStory | None) -> str:
    """Return the line. ``account``: the daemon's user in the cluster; ``story``: of the action's order."""
    outcome, application, container, queue = performed.outcome, performed.application, "", performed.queue
    if story is not None:
        application, container = story.victim, story.container
        queue = story.names[application].queue if application in story.names else ""
    failure = "" if isinstance(outcome, Accepted) else said(outcome.why) or "no answer"
    return audit_line(
        account,
        performed.action,
        performed.order or "yarn",
        failure,
        application=application,
        container=container,
        queue=queue,
    )
