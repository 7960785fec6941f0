"""All invariants, by name, in the order in which they are checked.

Law: for every name a test plants a bug and expects exactly that name.
"""

from __future__ import annotations

from emulator.invariants.breaches import named
from emulator.invariants.deciding import (
    containers_obey_the_ledger,
    controller_stays_awake,
    journal_before_action,
    ledger_is_sound,
    records_are_in_order,
)
from emulator.invariants.demand import (
    asks_are_in_order,
    demand_is_listed,
    finished_jobs_own_nothing,
    granted_is_in_the_mail,
    pending_is_the_sum_of_asks,
    reservations_are_counted,
    room_is_not_left_lying,
)
from emulator.invariants.ending import (
    all_jobs_are_done,
    all_keys_are_committed,
    nothing_is_owed,
    only_last_exits_are_held,
    suspending_loses_nothing,
)
from emulator.invariants.events import clock_never_goes_back, next_event_is_the_earliest, no_event_at_never
from emulator.invariants.masters import (
    every_task_is_asked_for,
    no_end_is_missed,
    no_work_after_the_end,
    one_master_per_job,
    task_in_one_place,
    tasks_left_are_counted,
)
from emulator.invariants.nodes import (
    cluster_is_its_nodes,
    dead_nodes_do_no_work,
    ended_is_told,
    grants_come_on_heartbeats,
    lost_nodes_are_empty,
    one_container_one_place,
    one_off_switch_per_heartbeat,
    open_nodes_have_room,
    room_adds_up,
    room_never_negative,
)
from emulator.invariants.queue_laws import (
    application_is_its_containers,
    masters_keep_their_share,
    nobody_waits_needlessly,
    queue_is_its_containers,
    user_is_its_applications,
    within_maximum,
    within_user_limit,
)
from emulator.invariants.suspending import (
    asked_has_an_order,
    attempts_go_on_where_saved,
    committed_by_its_last_attempt,
    counters_only_grow,
    draining_stops_at_a_border,
    holding_has_a_manifest,
    keys_without_gap,
    lost_only_by_an_end,
    manifest_is_the_last_piece,
    saved_only_grows,
    suspended_has_saved,
)
from emulator.invariants.watched_run import Watch

INVARIANTS = named(
    clock_never_goes_back,
    next_event_is_the_earliest,
    no_event_at_never,
    room_never_negative,
    room_adds_up,
    cluster_is_its_nodes,
    open_nodes_have_room,
    lost_nodes_are_empty,
    dead_nodes_do_no_work,
    one_container_one_place,
    grants_come_on_heartbeats,
    one_off_switch_per_heartbeat,
    ended_is_told,
    queue_is_its_containers,
    application_is_its_containers,
    user_is_its_applications,
    within_maximum,
    within_user_limit,
    masters_keep_their_share,
    nobody_waits_needlessly,
    demand_is_listed,
    asks_are_in_order,
    pending_is_the_sum_of_asks,
    reservations_are_counted,
    room_is_not_left_lying,
    granted_is_in_the_mail,
    finished_jobs_own_nothing,
    one_master_per_job,
    task_in_one_place,
    tasks_left_are_counted,
    every_task_is_asked_for,
    no_end_is_missed,
    no_work_after_the_end,
    keys_without_gap,
    manifest_is_the_last_piece,
    saved_only_grows,
    attempts_go_on_where_saved,
    committed_by_its_last_attempt,
    asked_has_an_order,
    draining_stops_at_a_border,
    holding_has_a_manifest,
    suspended_has_saved,
    lost_only_by_an_end,
    counters_only_grow,
    ledger_is_sound,
    records_are_in_order,
    journal_before_action,
    controller_stays_awake,
    containers_obey_the_ledger,
)
"""What holds after every event."""

AT_END = named(
    all_jobs_are_done,
    all_keys_are_committed,
    only_last_exits_are_held,
    nothing_is_owed,
    suspending_loses_nothing,
)
"""What holds once every job is done."""


def check_all(watch: Watch) -> None:
    """Check every invariant of :data:`INVARIANTS`, after every event, and remember for the next time."""
    watch.look()
    for invariant in INVARIANTS.values():
        invariant(watch)
    watch.remember()
    watch.checks += 1


def check_end(watch: Watch) -> None:
    """Check :data:`AT_END`: what holds once every job is done."""
    watch.look()
    for invariant in AT_END.values():
        invariant(watch)
