"""``yarnctl run``: the daemon. It observes by default; ``--enforce`` acts.

Law: nothing is opened while options are read, and what cannot be meant is refused before anything else.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.amounts import part_of, span_ms_of
from yarnctl.cli.cluster import (
    cluster_of,
    cluster_options,
    defaults_of,
    folder_options,
    folders_of,
    queue_options,
    queues_of,
)
from yarnctl.cli.gate_options import admission_options, admitting_of, history_of
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.daemon.loop import Loop
    from yarnctl.daemon.running import Plan
    from yarnctl.daemon.state_dir import StateDir
    from yarnctl.deciding.settings import LeverSettings
    from yarnctl.service.security.tokens import Tokens
_LOG = logging.getLogger("yarnctl.daemon")

OBSERVATION_AGE_MS = 500
"""How often one cheap request asks whether a production job waits."""
SUSPEND_MS, LEAVE_MS, COMMIT_MS = 4_000, 1_500, 1_000
"""What the mix predicts: from a request to the room of a suspension, and of a kill; how much longer a reduce
takes to commit (facts/hadoop.md, section 11: a checkpoint within some seconds, a killed attempt's container
given to the next within half a second, both seen by the next look)."""
REST_MS = 1_000
"""A runner continues at once when a request is withdrawn; it may still be the best choice a moment later."""


@click.command()
@cluster_options
@click.option("--enforce", is_flag=True, help="Act. Without it everything is decided and nothing is done.")
@queue_options
@click.option("--policy", "job_policy", default="MR", show_default=True, help="Which job gives way first.")
@click.option("--task-policy", default="SRT", show_default=True, help="Which of its tasks.")
@click.option(
    "--in-flight",
    "in_flight_ratio",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help="At most this part of the victims' containers suspends at once.",
)
@click.option(
    "--in-flight-least",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="... but so many may. Where research holds fewer than 20 containers a tenth of them is one at a"
    " time: raise this on a small cluster if production is to get its room sooner.",
)
@click.option(
    "--eviction",
    type=click.Choice(("natjam", "mix")),
    default="natjam",
    show_default=True,
    help="natjam suspends reduces of jobs that carry the task runner. mix takes the cheapest lever in time:"
    " it waits for a task, suspends or ends a reduce, or kills a map, of all MapReduce jobs, by --may-lose.",
)
@click.option(
    "--may-lose",
    metavar="P",
    help="With --eviction mix: so much of the container time that the victims held in the last hour may be"
    " lost, like 2%.  [default: 0%]",
)
@click.option(
    "--room-within",
    metavar="SPAN",
    help="With --eviction mix: how soon a lever must give room, like 3s.  [default: 4s]",
)
@click.option(
    "--budgets",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --eviction mix: TOML file of [queue.NAME] and [user.NAME], each with may_lose and window"
    " (docs/levers.md).",
)
@click.option("--allow-priority", is_flag=True, help="With --mode deadlines: change YARN's priorities.")
@click.option(
    "--cap-queue",
    is_flag=True,
    help="While asks are being served lower the preemptable queues' maximum-capacity to their guarantee, so"
    " that the room is not taken back; it is put back in any case. Needs a scheduler that can be changed.",
)
@click.option(
    "--predicted-demand",
    type=click.IntRange(0, 1000),
    metavar="CONTAINERS",
    default=0,
    show_default=True,
    help="Make room for so many of a preempting job's first tasks while its master still starts, as its last"
    " run (same name but for numbers, same user) asked for them; for a job without one in the history nothing"
    " is predicted. The victims give this room up some seconds sooner. Needs --cap-queue.",
)
@click.option(
    "--kill-on-timeout", is_flag=True, help="Kill what does not save itself in time (work is lost)."
)
@folder_options
@click.option(
    "--listen", default="127.0.0.1:8188", show_default=True, help="HOST:PORT of API and page, or off."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Secret that allows everything, and reads beyond loopback: one operator's token. chmod 600.",
)
@click.option(
    "--tokens",
    "tokens_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file of tokens with a name, a user, scopes (read, submit, operate) and a token file each;"
    " docs/admission.md. chmod 600, as each token file.",
)
@click.option("--open-reads", is_flag=True, help="Let everybody read who reaches --listen, without token.")
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="Host name that is answered, too (besides loopback's and, beyond loopback, any IP address).",
)
@click.option("--state-dir", type=click.Path(path_type=Path, file_okay=False), help="Journal and identity.")
@click.option(
    "--journal-file-mib",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    help="Begin a new file of the journal when one is so large; the old ones stay (they may be gzipped).",
)
@click.option(
    "--order-timeout-s",
    type=click.IntRange(1, 3600),
    default=25,
    show_default=True,
    help="Give an order up that shows no sign of life for so long. Runners that no signal reaches look every"
    " 15 to 20 s.",
)
@admission_options
@click.option("--ticks", type=click.IntRange(1), help="Stop after so many looks.")
@click.option("--quiet", is_flag=True, help="Say warnings only.")
def command(**given: Any) -> None:
    """Attach to a cluster: make room for preempting queues' jobs without losing others' work."""
    from yarnctl.daemon.running import run
    from yarnctl.service.security.tokens import read_tokens

    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING if given["quiet"] else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    logging.getLogger("hdfs").setLevel(logging.ERROR)
    plan = plan_of(given)
    tokens = read_tokens(given["tokens_file"], given["token_file"])
    if plan.admitting is not None and (not tokens or given["listen"] == "off"):
        _LOG.warning("nobody can ask at the gate: that takes --listen and --tokens or --token-file")
    run(plan, service(given["listen"], tokens, open_reads=given["open_reads"], allow=given["allow_hosts"]))


def plan_of(given: dict[str, Any]) -> Plan:
    """Check what was given and return the plan; raises BadInput naming the option."""
    import msgspec

    from yarnctl.attach.connection.connection import Attachment
    from yarnctl.daemon.running import Plan, cluster_name
    from yarnctl.daemon.state_dir import default_path

    require_policies(given)
    hurried, victims = queues_of(given)
    levers = levers_of(given)
    admitting = admitting_of(given)
    cluster, requests_root, store_root = folders_of(cluster_of(given), given)
    attachment = Attachment(
        preempting_queues=hurried,
        preemptable_queues=victims,
        mode=given["mode"],
        enforce=given["enforce"],
        allow_kill=given["kill_on_timeout"],
        allow_priority=given["allow_priority"],
        allow_queue_cap=given["cap_queue"],
        predicted_max=predicted_max_of(given),
        requests_root=requests_root,
        requests_owner=cluster.user,
    )
    if levers is not None:
        attachment = msgspec.structs.replace(
            attachment, levers=True, budgets=levers.budgets, loss_window_ms=levers.window_ms
        )
    state_dir = given["state_dir"] or default_path(cluster_name(cluster), os.environ)
    return Plan(
        cluster=cluster,
        attachment=attachment,
        settings=settings_of(given, hurried, victims, levers),
        optional_queues=defaults_of(given),
        state_dir=state_dir,
        store_root=store_root,
        journal_bytes=given["journal_file_mib"] << 20,
        ticks=given["ticks"],
        admitting=admitting,
        history=history_of(given),
    )


def require_policies(given: dict[str, Any]) -> None:
    """Raise BadInput for a policy that there is not, naming the option and those that there are."""
    from yarnctl.deciding.policies import COMPARED_JOB_POLICIES, JOB_POLICIES, TASK_POLICIES

    for option, name, known in (
        ("--policy", given["job_policy"], {**JOB_POLICIES, **COMPARED_JOB_POLICIES}),
        ("--task-policy", given["task_policy"], TASK_POLICIES),
    ):
        if name not in known:
            raise BadInput(option, f"no policy {name[:60]!r}", f"use one of {', '.join(known)}")


def predicted_max_of(given: dict[str, Any]) -> int:
    """Return how many containers are predicted; raises BadInput where that is not possible."""
    ahead: int = given["predicted_demand"]
    if ahead and not given["cap_queue"]:
        remedy = "give --cap-queue, too: room that nobody has asked for yet is taken by who asks"
        raise BadInput("--predicted-demand", "the room it makes would not be kept", remedy)
    if ahead and given["mode"] == "deadlines":
        raise BadInput("--predicted-demand", "predicts for preempting queues, and --mode deadlines has none")
    if ahead and given["history"] == "off":
        raise BadInput(
            "--predicted-demand", "predicts by earlier runs, and --history is off", "give its URL, or neither"
        )
    return ahead


def levers_of(given: dict[str, Any]) -> LeverSettings | None:
    """Return how levers are chosen (None: there are none); raises BadInput naming the option."""
    from yarnctl.daemon.budget_files import read_budgets
    from yarnctl.deciding.settings import LeverSettings

    told = {"--may-lose": given["may_lose"], "--room-within": given["room_within"]}
    told["--budgets"] = given["budgets"]
    if given["eviction"] != "mix":
        for option in (option for option, text in told.items() if text is not None):
            raise BadInput(option, "is of the mix", "give --eviction mix, too")
        return None
    if given["kill_on_timeout"]:
        told_why = "the mix loses work within --may-lose only"
        raise BadInput("--kill-on-timeout", told_why, "leave it out, or give --eviction natjam")
    if given["mode"] == "deadlines":
        raise BadInput("--eviction", "the mix makes room for queues", "leave out --mode deadlines")
    within: str | None = given["room_within"]
    return LeverSettings(
        room_within_ms=SUSPEND_MS if within is None else span_ms_of("--room-within", within),
        suspend_ms=SUSPEND_MS,
        leave_ms=LEAVE_MS,
        commit_ms=COMMIT_MS,
        may_lose_ratio=part_of("--may-lose", given["may_lose"] or "0%"),
        budgets=() if given["budgets"] is None else read_budgets(given["budgets"]),
    )


def settings_of(
    given: dict[str, Any], hurried: tuple[str, ...], victims: tuple[str, ...], levers: LeverSettings | None
) -> Any:
    """Return the controller's settings for these options."""
    import msgspec

    from yarnctl.deciding.settings import DEFAULT

    return msgspec.structs.replace(
        DEFAULT,
        levers=levers,
        mode=given["mode"],
        hurried_queues=tuple(hurried),
        victim_queues=tuple(victims),
        job_policy=given["job_policy"],
        task_policy=given["task_policy"],
        on_timeout="kill" if given["kill_on_timeout"] else "give-up",
        in_flight_ratio_max=given["in_flight_ratio"],
        in_flight_least=given["in_flight_least"],
        tick_ms=OBSERVATION_AGE_MS,
        rest_ms=REST_MS,
        kill_timeout_ms=given["order_timeout_s"] * 1000,
        observe_only=not given["enforce"],
    )


def service(
    listen: str, token: str | Tokens | None, *, open_reads: bool = False, allow: tuple[str, ...] = ()
) -> Callable[[Loop, StateDir], Callable[[], None]] | None:
    """Return what starts API and page, None for ``off``; raises BadInput before anything is started."""
    if listen == "off":
        return None
    from yarnctl.daemon.running import clock_ms
    from yarnctl.listening.names import is_loopback, names_for
    from yarnctl.service.app import make_app
    from yarnctl.service.serving import parse_listen, require_safe, serve_in_thread

    host, port = parse_listen(listen)
    require_safe(host, token, open_reads)
    names = names_for(host, allow)

    def serve(loop: Loop, state: StateDir) -> Callable[[], None]:
        app = make_app(
            lambda: loop.publisher.view,
            token=token,
            control=loop,
            journal=state.journal,
            names=names,
            clock=clock_ms,  # the loop's: by another one a stuck loop may seem young for ever
            open_reads=open_reads or is_loopback(host),
            window=None if loop.admission is None else loop.admission.request_queue,
        )
        handle = serve_in_thread(app, host, port, token=token, open_reads=open_reads)
        logging.getLogger("yarnctl.daemon").info("page and API at %s", handle.url)
        return handle.stop

    return serve
