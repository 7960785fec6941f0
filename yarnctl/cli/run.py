"""``yarnctl run``: the daemon. It observes by default; with ``--enforce`` it acts.

Nothing is opened while options are read. An option that cannot be used is rejected before anything else.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import click

from yarnctl.amounts import part_of, span_ms_of
from yarnctl.cli.access_options import LISTEN_OPTIONS, ListenOptions, service
from yarnctl.cli.cluster import (
    ClusterOptions,
    FolderOptions,
    Mode,
    QueueOptions,
    cluster_of,
    cluster_options,
    folder_options,
    folders_of,
    optional_queues,
    queue_options,
    queues_of,
)
from yarnctl.cli.gate_options import GateOptions, admission_options, admitting_of, history_of
from yarnctl.cli.grouped_help import GroupedCommand, RareOption, help_all_option, words_of
from yarnctl.cli.lock_options import LockOptions, lock_of, lock_options
from yarnctl.cli.logs import LogFormat, LogLevel, set_level, set_up
from yarnctl.cli.settings_file import TABLE, placed, settings_of, shown
from yarnctl.command_line import option_group, options_in
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.attach.connection.connection import YarnPreemption
    from yarnctl.daemon.budget_files import BudgetsFile
    from yarnctl.daemon.running import Plan, Serve
    from yarnctl.deciding.settings import LeverSettings, Settings
_LOG = logging.getLogger("yarnctl.daemon")

RELOADED = frozenset(
    {"preempting", "preemptable", "policy", "task-policy", "in-flight", "in-flight-least", "may-lose"}
    | {"room-within", "second-worth", "budgets", "governor", "order-timeout-s", "log-level"}
)
"""The options that a running daemon reads again on SIGHUP; the other ones need a restart."""

OBSERVATION_AGE_MS = 500  # The period of the cheap request that checks for pending production requests
COMMIT_MS = 1_000  # How much longer a reduce takes to commit, as the mix predicts
REST_MS = 1_000  # A task is not chosen again for this long after an order was withdrawn: it resumes at once


class PreemptionOptions(NamedTuple):
    """How containers are freed: policies, eviction, and what the daemon may change."""

    enforce: bool = False
    job_policy: str = "MR"
    task_policy: str = "SRT"
    in_flight_ratio: float = 0.1
    in_flight_least: int = 4
    eviction: str = "natjam"
    may_lose: str | None = None
    room_within: str | None = None
    second_worth: float | None = None
    idle_after: str | None = None
    budgets: Path | None = None
    allow_priority: bool = False
    cap_queue: bool = False
    yarn_preemption: YarnPreemption = "off"
    predicted_demand: int = 0
    kill_on_timeout: bool = False
    order_timeout_s: int = 25
    governor: bool = True


class StateOptions(NamedTuple):
    """Where the journal is written, the size of its files, when the daemon stops by itself, and its log."""

    state_dir: Path | None = None
    journal_file_mib: int = 64
    ticks: int | None = None
    log_level: LogLevel = "info"
    log_format: LogFormat = "text"
    webhook: str | None = None
    webhook_file: Path | None = None


_PREEMPTION = (
    click.option(
        "--enforce", is_flag=True, help="Act; without it yarnctl decides and records, but changes nothing."
    ),
    click.option(
        "--policy",
        "job_policy",
        cls=RareOption,
        default="MR",
        show_default=True,
        help="Order in which research jobs are preempted.",
    ),
    click.option(
        "--task-policy",
        cls=RareOption,
        default="SRT",
        show_default=True,
        help="Order in which a job's tasks are preempted.",
    ),
    click.option(
        "--in-flight",
        "in_flight_ratio",
        type=click.FloatRange(0, 1),
        default=0.1,
        show_default=True,
        help="Maximum share of the research containers that are suspended at the same time.",
    ),
    click.option(
        "--in-flight-least",
        cls=RareOption,
        type=click.IntRange(1),
        default=4,
        show_default=True,
        help="Minimum number of concurrent suspensions, even if --in-flight allows fewer. It decides where"
        " research holds fewer than 40 containers.",
    ),
    click.option(
        "--eviction",
        type=click.Choice(("natjam", "mix")),
        default="natjam",
        show_default=True,
        help="natjam suspends reduces of jobs that run the task runner. mix uses the cheapest lever for each"
        " MapReduce, Spark or Flink container. --may-lose limits the lost work.",
    ),
    click.option(
        "--may-lose",
        metavar="P",
        help="With --eviction mix: maximum share of the research container time of the last hour that may be"
        " lost, for example 2%.  [default: 0%]",
    ),
    click.option(
        "--room-within",
        cls=RareOption,
        metavar="SPAN",
        help="With --eviction mix: maximum time until a lever frees a container, for example 3s.  [default:"
        " 12s; with --second-worth 0: 4s]",
    ),
    click.option(
        "--second-worth",
        cls=RareOption,
        type=click.FloatRange(0, 1000),
        metavar="W",
        help="With --eviction mix: seconds of lost research work that one second of a waiting production"
        " container is worth. 0: the least lost work counts alone.  [default: 1]",
    ),
    click.option(
        "--idle-after",
        cls=RareOption,
        metavar="SPAN",
        help="With --eviction mix: how long an executor of Spark has had no task before it counts as idle,"
        " for example 1m.  [default: 2s]",
    ),
    click.option(
        "--budgets",
        type=click.Path(path_type=Path, dir_okay=False),
        help="TOML file of [queue.NAME] and [user.NAME]: the hours in which containers may be taken,"
        " leave_alone, and with --eviction mix may_lose and window (docs/site.md).",
    ),
    click.option(
        "--governor/--no-governor",
        cls=RareOption,
        default=True,
        show_default=True,
        help="With --eviction mix: drain no executor that comes later than production helps itself, and"
        " pause suspensions or drains while they stop no task.",
    ),
    click.option(
        "--allow-priority", is_flag=True, help="With --mode deadlines: set YARN's application priorities."
    ),
    click.option(
        "--cap-queue",
        is_flag=True,
        help="While production requests are pending, lower maximum-capacity of the preemptable queues to"
        " their guarantee, so that research does not take the freed containers; restore it afterwards."
        " Requires a scheduler configuration that can be changed at run time.",
    ),
    click.option(
        "--yarn-preemption",
        type=click.Choice(("switch", "beside", "off")),
        default="off",
        show_default=True,
        help="YARN's own preemption of the preemptable queues. switch: turn it off while yarnctl acts, and on"
        " again when yarnctl stops, dies or is paused; requires a scheduler configuration that can be changed"
        " at run time. beside: act although it is on (docs/yarn.md has the waits that it needs). off: send no"
        " order while it is on.",
    ),
    click.option(
        "--predicted-demand",
        cls=RareOption,
        type=click.IntRange(0, 1000),
        metavar="CONTAINERS",
        default=0,
        show_default=True,
        help="Free up to this many containers for a production job's first tasks while its application master"
        " starts, as many as its last run requested (same user, same name apart from digits). A job without a"
        " run in the history gets none. Requires --cap-queue.",
    ),
    click.option(
        "--kill-on-timeout",
        cls=RareOption,
        is_flag=True,
        help="Kill a task that does not write its checkpoint in time (its work is lost).",
    ),
    click.option(
        "--order-timeout-s",
        cls=RareOption,
        type=click.IntRange(1, 3600),
        default=25,
        show_default=True,
        help="Seconds without progress after which an order expires. A task runner that gets no signal polls"
        " every 15 to 20 s.",
    ),
)
_STATE = (
    click.option(
        "--state-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder for the journal and the daemon's identity.  [default: by cluster, below ~/.local/state]",
    ),
    click.option(
        "--journal-file-mib",
        cls=RareOption,
        type=click.IntRange(1),
        default=64,
        show_default=True,
        help="Size at which a new journal file begins. Old files are kept; you can gzip them.",
    ),
    click.option("--ticks", cls=RareOption, type=click.IntRange(1), help="Stop after this many ticks."),
    click.option(
        "--log-level",
        type=click.Choice(get_args(LogLevel)),
        default="info",
        show_default=True,
        help="Log lines of this level and above. Audit lines are always logged.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(get_args(LogFormat)),
        default="text",
        show_default=True,
        help="json: one object a line, with times in UTC.",
    ),
    click.option(
        "--webhook",
        metavar="URL",
        help="Send an event for each container given, task resumed, setting lowered, and state of the daemon"
        " to this address: https, or http on loopback. It is visible in the list of processes.",
    ),
    click.option(
        "--webhook-file",
        cls=RareOption,
        type=click.Path(path_type=Path, dir_okay=False),
        help="File with the address of --webhook, if it has a key. Mode 600.",
    ),
)


@click.command(cls=GroupedCommand)
@cluster_options
@queue_options
@option_group(PreemptionOptions, "preemption", _PREEMPTION, section="Preemption")
@folder_options
@option_group(ListenOptions, "listening", LISTEN_OPTIONS, section="Page and API")
@lock_options
@option_group(StateOptions, "state", _STATE, section="State and log")
@admission_options
@help_all_option
def command(
    cluster: ClusterOptions,
    queues: QueueOptions,
    preemption: PreemptionOptions,
    folders: FolderOptions,
    listening: ListenOptions,
    locking: LockOptions,
    state: StateOptions,
    gate: GateOptions,
) -> None:
    """Attach to a cluster and free containers for production jobs without losing research work."""
    from yarnctl.daemon.running import run

    set_up(state.log_level, state.log_format)
    options = RunOptions(cluster, queues, preemption, folders, listening, locking, state, gate)
    plan, serve = prepare(options)
    run(plan, serve, Rereading(click.get_current_context(), plan))


class RunOptions(NamedTuple):
    """All options of ``yarnctl run``."""

    cluster: ClusterOptions
    queues: QueueOptions
    preemption: PreemptionOptions
    folders: FolderOptions
    listening: ListenOptions
    locking: LockOptions
    state: StateOptions
    gate: GateOptions


def options_of(values: Mapping[str, Any]) -> RunOptions:
    """Return the options from their values by the names of the arguments."""
    return RunOptions(
        options_in(ClusterOptions, values),
        options_in(QueueOptions, values),
        options_in(PreemptionOptions, values),
        options_in(FolderOptions, values),
        options_in(ListenOptions, values),
        options_in(LockOptions, values),
        options_in(StateOptions, values),
        options_in(GateOptions, values),
    )


def prepare(options: RunOptions) -> tuple[Plan, Serve | None]:
    """Return the plan and what starts the page; raises BadInput for all that is known without the cluster."""
    from yarnctl.service.security.tokens import read_tokens

    plan, listening = plan_from(options), options.listening
    tokens = read_tokens(listening.tokens_file, listening.token_file)
    if plan.admitting is not None and (not tokens or listening.listen == "off"):
        _LOG.warning("admission control accepts no requests: set --listen, and --tokens or --token-file")
    return plan, service(listening, tokens)


def plan_from(options: RunOptions) -> Plan:
    """Return the daemon's plan; see :func:`plan_of`."""
    import msgspec

    plan = plan_of(
        options.cluster, options.queues, options.preemption, options.folders, options.state, options.gate
    )
    return msgspec.structs.replace(plan, lock=lock_of(options.locking))


class Rereading:
    """Reads the settings of a running daemon again, from its command line, the environment and the file."""

    def __init__(self, context: click.Context, plan: Plan) -> None:
        self._words = words_of(context)
        self._values = dict(context.params)
        self._cluster = plan.cluster

    def __call__(self) -> tuple[Plan, Callable[[], None]]:
        """Return the plan with the options of ``RELOADED`` as they are now, and what logs the difference.

        Raises BadInput for settings that cannot be used, with the place of the wrong one.
        """
        try:
            with command.make_context("run", list(self._words)) as context:
                try:
                    return self._reread(context)
                except BadInput as error:
                    raise placed(error, context) from None
        except click.ClickException as error:
            raise BadInput("run", error.format_message()) from None

    def _reread(self, context: click.Context) -> tuple[Plan, Callable[[], None]]:
        now, options = context.params, settings_of(command)
        changed = [key for key, option in options.items() if now[str(option.name)] != self._value(option)]
        taken = {str(options[key].name): now[str(options[key].name)] for key in changed if key in RELOADED}
        values = {**self._values, "config": now["config"], **taken}
        plan = plan_from(options_of(values))
        words = [
            f"{key} {shown(self._value(options[key]))} -> {shown(now[str(options[key].name)])}"
            for key in changed
            if key in RELOADED
        ]
        later = [f"{TABLE}.{key}" for key in changed if key not in RELOADED]
        fields = type(plan.cluster).__struct_fields__
        later += [
            f"cluster.{name}"
            for name in fields
            if getattr(plan.cluster, name) != getattr(self._cluster, name)
        ]

        def accept() -> None:
            self._values = values
            set_level(values["log_level"])
            _LOG.warning("settings reloaded: %s", ", ".join(words) or "no option has changed")
            if later:
                _LOG.warning("restart yarnctl to use the new values of %s", ", ".join(later))

        return plan, accept

    def _value(self, option: click.Option) -> object:
        return self._values[str(option.name)]


def plan_of(
    cluster: ClusterOptions,
    queues: QueueOptions,
    preemption: PreemptionOptions,
    folders: FolderOptions,
    state: StateOptions,
    gate: GateOptions,
) -> Plan:
    """Check the options and return the daemon's plan; BadInput names the option."""
    import msgspec

    from yarnctl.attach.connection.connection import Attachment
    from yarnctl.daemon.running import Plan, cluster_name
    from yarnctl.daemon.state_dir import default_path
    from yarnctl.deciding.policies import COMPARED_JOB_POLICIES, JOB_POLICIES, TASK_POLICIES

    for option, name, known in (
        ("--policy", preemption.job_policy, {**JOB_POLICIES, **COMPARED_JOB_POLICIES}),
        ("--task-policy", preemption.task_policy, TASK_POLICIES),
    ):
        if name not in known:
            raise BadInput(option, f"unknown policy {name[:60]!r}", f"use one of {', '.join(known)}")
    preempting, preemptable = queues_of(queues)
    if queues.mode == "guarantees" and preemption.cap_queue:
        problem = "works only with --mode queues: with guarantees each queue keeps its maximum"
        raise BadInput("--cap-queue", problem, "remove it")
    budgets_file = _budgets_of(preemption)
    levers = levers_of(preemption, queues.mode, budgets_file)
    admitting = admitting_of(gate, queues.mode, predicts=preemption.predicted_demand > 0)
    address, requests_root, store_root = folders_of(cluster_of(cluster), folders)
    attachment = Attachment(
        preempting_queues=preempting,
        preemptable_queues=preemptable,
        mode=queues.mode,
        enforce=preemption.enforce,
        allow_kill=preemption.kill_on_timeout,
        allow_priority=preemption.allow_priority,
        allow_queue_cap=preemption.cap_queue,
        yarn_preemption=preemption.yarn_preemption,
        predicted_max=predicted_max_of(preemption, queues.mode, gate.history),
        requests_root=requests_root,
        requests_owner=address.user,
        left_alone_queues=budgets_file.queues_left_alone,
        left_alone_users=budgets_file.users_left_alone,
    )
    if levers is not None:
        attachment = msgspec.structs.replace(
            attachment, levers=True, budgets=levers.budgets, loss_window_ms=levers.window_ms
        )
    if preemption.idle_after is not None:
        idle_ms = span_ms_of("--idle-after", preemption.idle_after)
        attachment = msgspec.structs.replace(attachment, spark_idle_ms=idle_ms)
    return Plan(
        cluster=address,
        attachment=attachment,
        settings=msgspec.structs.replace(
            controller_settings(preemption, queues.mode, preempting, preemptable, levers),
            hours=budgets_file.hours or msgspec.UNSET,
        ),
        optional_queues=optional_queues(queues, gate.admission),
        state_dir=state.state_dir or default_path(cluster_name(address), os.environ),
        store_root=store_root,
        journal_bytes=state.journal_file_mib << 20,
        ticks=state.ticks,
        admitting=admitting,
        history=history_of(gate.history),
        webhook=webhook_of(state),
    )


def webhook_of(state: StateOptions) -> str:
    """Return the address that receives events, "" for none; BadInput does not have its text."""
    from yarnctl.daemon.notices.webhook import checked_webhook
    from yarnctl.service.security.tokens import read_secret

    if state.webhook_file is None:
        return "" if state.webhook is None else checked_webhook(state.webhook)
    if state.webhook is not None:
        raise BadInput("--webhook-file", "--webhook is also set", "remove one of the two")
    return checked_webhook(read_secret(state.webhook_file, "--webhook-file"), "--webhook-file")


def predicted_max_of(preemption: PreemptionOptions, mode: Mode, history: str | None) -> int:
    """Return the maximum of predicted containers for a job; BadInput where nothing can be predicted."""
    if not preemption.predicted_demand:
        return 0
    if not preemption.cap_queue:
        problem = (
            "requires --cap-queue: without it other applications take the containers before they are"
            " requested"
        )
        raise BadInput("--predicted-demand", problem, "add --cap-queue")
    if mode == "deadlines":
        problem = "works only between queues, not with --mode deadlines"
        raise BadInput("--predicted-demand", problem, "remove one of the two")
    if history == "off":
        raise BadInput("--predicted-demand", "requires the history server", "set --history to its URL")
    return preemption.predicted_demand


def _budgets_of(preemption: PreemptionOptions) -> BudgetsFile:
    """Return what the budgets file has; BadInput if it has budgets and no lever may lose work."""
    from yarnctl.daemon.budget_files import BudgetsFile, read_budgets

    if preemption.budgets is None:
        return BudgetsFile()
    found = read_budgets(preemption.budgets)
    if found.rules and preemption.eviction != "mix":
        rule = found.rules[0]
        problem = f"may_lose of {rule.kind} {rule.name} requires --eviction mix"
        raise BadInput("--budgets", problem, "add --eviction mix, or remove may_lose")
    return found


def levers_of(preemption: PreemptionOptions, mode: Mode, budgets_file: BudgetsFile) -> LeverSettings | None:
    """Return how levers are chosen (None: ``--eviction natjam``); BadInput names the option."""
    import msgspec

    from yarnctl.deciding.order import LEAVE_MS, SUSPEND_MS
    from yarnctl.deciding.settings import LeverSettings
    from yarnctl.deciding.waiting_worth import KILLS_MAX, ROOM_SUSPENSIONS, SECOND_WORTH_RATIO

    if preemption.eviction != "mix":
        for option, value in (
            ("--may-lose", preemption.may_lose),
            ("--room-within", preemption.room_within),
            ("--second-worth", preemption.second_worth),
            ("--idle-after", preemption.idle_after),
        ):
            if value is not None:
                raise BadInput(option, "requires --eviction mix", "add --eviction mix, or remove it")
        return None
    if preemption.kill_on_timeout:
        problem = "cannot be combined with --eviction mix, where --may-lose limits the lost work"
        raise BadInput("--kill-on-timeout", problem, "remove it, or use --eviction natjam")
    if mode == "deadlines":
        problem = "mix works only between queues, not with --mode deadlines"
        raise BadInput("--eviction", problem, "remove --mode deadlines")
    within, worth = preemption.room_within, preemption.second_worth
    worth = SECOND_WORTH_RATIO if worth is None else worth
    usual_ms = SUSPEND_MS * ROOM_SUSPENSIONS if worth else SUSPEND_MS
    return LeverSettings(
        room_within_ms=usual_ms if within is None else span_ms_of("--room-within", within),
        suspend_ms=SUSPEND_MS,
        leave_ms=LEAVE_MS,
        commit_ms=COMMIT_MS,
        may_lose_ratio=part_of("--may-lose", preemption.may_lose or "0%"),
        budgets=budgets_file.rules,
        second_worth_ratio=worth or msgspec.UNSET,
        kills_max=KILLS_MAX if worth else msgspec.UNSET,
    )


def controller_settings(
    preemption: PreemptionOptions,
    mode: Mode,
    preempting: tuple[str, ...],
    preemptable: tuple[str, ...],
    levers: LeverSettings | None,
) -> Settings:
    """Return the controller's settings."""
    import msgspec

    from yarnctl.deciding.settings import DEFAULT

    return msgspec.structs.replace(
        DEFAULT,
        levers=levers,
        mode=mode,
        preempting_queues=preempting,
        preemptable_queues=preemptable,
        job_policy=preemption.job_policy,
        task_policy=preemption.task_policy,
        on_timeout="kill" if preemption.kill_on_timeout else "give-up",
        in_flight_ratio_max=preemption.in_flight_ratio,
        in_flight_least=preemption.in_flight_least,
        tick_ms=OBSERVATION_AGE_MS,
        rest_ms=REST_MS,
        kill_timeout_ms=preemption.order_timeout_s * 1000,
        observe_only=not preemption.enforce,
        governed=True if levers is not None and preemption.governor else msgspec.UNSET,
    )
