"""``yarnctl run``: the daemon. It observes by default; ``--enforce`` acts.

Law: nothing is opened while options are read, and what cannot be meant is refused before anything else.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.cli.cluster import cluster_of, cluster_options, folder_options, queue_options, queues_of
from yarnctl.errors import BadInput
from yarnctl.old_names import renamed_option

if TYPE_CHECKING:
    from yarnctl.daemon.admission.building import AdmissionOptions
    from yarnctl.daemon.loop import Loop
    from yarnctl.daemon.running import Plan
    from yarnctl.daemon.state_dir import StateDir
    from yarnctl.deciding.admission.mechanisms.mrm import MrmChoices
    from yarnctl.service.security.tokens import Tokens

Function = Callable[..., Any]

DEFAULT_ALLOCATOR = "justice"


def admission_options(command: Function) -> Function:
    """Add ``--admission`` and what belongs to it: the arguments of :func:`admitting_of`."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def admitting_of(given: dict[str, Any]) -> AdmissionOptions | None:
    """Return the gate's options, None without ``--admission``; raises BadInput naming the option."""
    name = given["admission"]
    if name is None:
        of_the_gate = ["admission_queues", "admission_capacity", "admission_container_mib"]
        _market_choices(given)
        for option in [*of_the_gate, *([] if given["predicted_demand"] else ["history"])]:
            if given[option]:
                told = "--" + option.replace("_", "-").removesuffix("s")
                raise BadInput(told, "says something of a gate, and there is none", "give --admission, too")
        return None
    from yarnctl.daemon.admission.building import AdmissionOptions
    from yarnctl.deciding.admission.mechanisms import MECHANISMS

    if name not in MECHANISMS:
        raise BadInput("--admission", f"no allocator {name!r}", f"use one of {', '.join(MECHANISMS)}")
    if name == "mrm" and given["mode"] != "deadlines":
        told = "promises deadlines, which YARN keeps only if they are served in their order"
        raise BadInput("--admission mrm", told, "give --mode deadlines (and --allow-priority), too")
    return AdmissionOptions(
        allocator=name,
        queues=given["admission_queues"],
        capacity=given["admission_capacity"],
        container_mib=given["admission_container_mib"],
        history=history_of(given),
        lease_ms=given["admission_lease_s"] * 1000,
        own=_market_choices(given),
    )


def _market_choices(given: dict[str, Any]) -> MrmChoices | None:
    """Return what was chosen of prices; raises BadInput naming the option."""
    from yarnctl.deciding.admission.mechanisms.mrm import MrmChoices

    chosen = {
        "kappa": given["admission_kappa"],
        "late_ratio": given["admission_late_ratio"],
    }
    said = {name: value for name, value in chosen.items() if value is not None}
    if given["admission"] != "mrm":
        for name in said:
            option = f"--admission-{name.replace('_', '-')}"
            raise BadInput(
                option, "says something of prices, and none are asked", "give --admission mrm, too"
            )
        return None
    if not 0 < said.get("kappa", 1.0) < float("inf"):
        raise BadInput("--admission-kappa", f"{said['kappa']} is no factor of a price", "give more than 0")
    if not 0 < said.get("late_ratio", 0.05) < 0.5:
        told = f"{said['late_ratio']} is no chance to be late that could be promised"
        raise BadInput(
            "--admission-late-ratio", told, "give more than 0 and less than 0.5, for instance 0.05"
        )
    return MrmChoices(**said)


def history_of(given: dict[str, Any]) -> str:
    """Return the history server that was named, ``off`` or "" (found); raises BadInput for no address."""
    history: str = given["history"] or ""
    if history and history != "off" and not history.startswith(("http://", "https://")):
        raise BadInput("--history", f"{history[:80]!r} is no address", "use for instance http://jhs:19888")
    return history.rstrip("/")


_OPTIONS = (
    click.option(
        "--admission",
        metavar="ALLOCATOR",
        is_flag=False,
        flag_value=DEFAULT_ALLOCATOR,
        help="Keep a gate for jobs with deadlines (POST /v1/admissions, yarnctl admit): justice, pythia,"
        " oracle, reactive_fs, no_drop_fs, or mrm, where deadlines have a price; alone:"
        f" {DEFAULT_ALLOCATOR}. It works while only observing, too. Off unless given.",
    ),
    click.option(
        "--admission-queue",
        "admission_queues",
        multiple=True,
        metavar="QUEUE",
        help="Only this leaf queue is behind the gate (repeatable): its guarantee is what may be given."
        "  [all]",
    ),
    click.option(
        "--admission-capacity",
        type=click.IntRange(1),
        metavar="CONTAINERS",
        help="How many containers there are. Else: the nodes' memory, each divided by a container's.",
    ),
    click.option(
        "--admission-container-mib",
        type=click.IntRange(1),
        metavar="MIB",
        help="Memory of one container; larger ones count as several."
        "  [1024, MapReduce's own default, or the scheduler's smallest allocation if that is more]",
    ),
    click.option(
        "--admission-lease-s",
        type=click.IntRange(5, 86_400),
        default=120,
        show_default=True,
        help="A request that nobody has renewed for so long is withdrawn.",
    ),
    click.option(
        "--admission-kappa",
        type=float,
        metavar="K",
        help="The price of a deadline without slack is K times the work (--admission mrm).  [1]",
    ),
    click.option(
        "--admission-late-ratio",
        type=float,
        metavar="R",
        help="The chance that a job computes more than there is room kept for (--admission mrm).  [0.05]",
    ),
    click.option(
        "--history",
        metavar="URL",
        help="JobHistoryServer that the gate and --predicted-demand learn from, or off (then the gate learns"
        " nothing).  [found in the ResourceManager's /conf or HADOOP_CONF_DIR]",
    ),
)


_LOG = logging.getLogger("yarnctl.daemon")

OBSERVATION_AGE_MS = 500
"""How often one cheap request asks whether a production job waits."""
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
@click.option("--allow-priority", is_flag=True, help="With --mode deadlines: change YARN's priorities.")
@renamed_option(
    "--cap-queue",
    was="--hold-queue",
    is_flag=True,
    help="While asks are being served lower the preemptable queues' maximum-capacity to their guarantee, so"
    " that the room is not taken back; it is put back in any case. Needs a scheduler that can be changed.",
)
@renamed_option(
    "--predicted-demand",
    was="--ahead",
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
    from yarnctl.attach.connection.connection import Attachment
    from yarnctl.checkpoint.opened_store import checked_root
    from yarnctl.daemon.running import Plan, cluster_name
    from yarnctl.daemon.state_dir import default_path

    cluster = cluster_of(given)
    hurried, victims = queues_of(given)
    attachment = Attachment(
        preempting_queues=hurried,
        preemptable_queues=victims,
        mode=given["mode"],
        enforce=given["enforce"],
        allow_kill=given["kill_on_timeout"],
        allow_priority=given["allow_priority"],
        allow_queue_cap=given["cap_queue"],
        predicted_max=predicted_max_of(given),
        requests_root=checked_root("--requests", given["requests"]),
        requests_owner=cluster.user,
    )
    state_dir = given["state_dir"] or default_path(cluster_name(cluster), os.environ)
    return Plan(
        cluster=cluster,
        attachment=attachment,
        settings=settings_of(given, hurried, victims),
        state_dir=state_dir,
        store_root=checked_root("--store", given["store"]),
        journal_bytes=given["journal_file_mib"] << 20,
        ticks=given["ticks"],
        admitting=admitting_of(given),
        history=history_of(given),
    )


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


def settings_of(given: dict[str, Any], hurried: tuple[str, ...], victims: tuple[str, ...]) -> Any:
    """Return the controller's settings for these options."""
    import msgspec

    from yarnctl.deciding.policies import COMPARED_JOB_POLICIES, JOB_POLICIES, TASK_POLICIES
    from yarnctl.deciding.settings import DEFAULT

    return msgspec.structs.replace(
        DEFAULT,
        mode=given["mode"],
        hurried_queues=tuple(hurried),
        victim_queues=tuple(victims),
        job_policy=_known("--policy", given["job_policy"], {**JOB_POLICIES, **COMPARED_JOB_POLICIES}),
        task_policy=_known("--task-policy", given["task_policy"], TASK_POLICIES),
        on_timeout="kill" if given["kill_on_timeout"] else "give-up",
        in_flight_ratio_max=given["in_flight_ratio"],
        in_flight_least=given["in_flight_least"],
        tick_ms=OBSERVATION_AGE_MS,
        rest_ms=REST_MS,
        kill_timeout_ms=given["order_timeout_s"] * 1000,
        observe_only=not given["enforce"],
    )


def _known(option: str, name: str, policies: Collection[str]) -> str:
    if name not in policies:
        raise BadInput(option, f"no policy {name!r}", f"use one of {', '.join(policies)}")
    return name


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
