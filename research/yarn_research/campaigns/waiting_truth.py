"""What is true in a live emulated cluster, and whether a reason why an application waits is true.

Law: a picture is taken on the emulator's own thread, of its actors (requests, queues, limits, containers,
timetables) and of the requests that yarnctl has sent it; not of yarnctl's snapshot, records or answers.

The lag: an answer shows what yarnctl saw in its newest look. So a claim is true if one picture shows it,
from the begin of the look before the newest one (:func:`window`) until just after the answer. The newest
picture before the begin counts: it shows how it was then. A look begins with yarnctl's GET of ``/scheduler``,
which is seen here; so the window follows a slow machine.
"""

from __future__ import annotations

import operator
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs

import msgspec

from emulator.cluster.entities import MAP, REDUCE, Container
from emulator.live.manager.state import AppRecord, ContainerRecord
from emulator.live.master.live_driver import LiveDriver
from emulator.live.programs.all_in_one import AllInOne
from yarnctl.units import Resources, fits

Item = Mapping[str, Any]
"""One application of ``GET /v1/applications``."""
LOCK_MS = 2500
"""yarnctl writes to HDFS every two seconds: only then it sees that HDFS is back, or the lock free."""
RIVAL_HOST = "localhost"
"""By this name of the ResourceManager's host another daemon is told apart."""
BUSY_MS = 75
"""Pictures are due every 50 ms."""
LATE_MS = 200
"""A look waits 300 ms for all masters together; an answer later than this may be missing in it."""
SILENT_MS = 30_000
"""So long yarnctl leaves a job alone whose master did not answer in a look."""
Verb = Literal["suspend", "kill", "drain"]
SOON_MS = 1000
"""Timetables and looks are that far apart at most: a span that yarnctl reads is so much older."""


def now_ms() -> int:
    """Return the wall clock in ms."""
    return time.time_ns() // 1_000_000


class Task(NamedTuple):
    """One container of an application. ``left_ms``: until its task ends (None: unknown)."""

    container: str
    node: str
    kind: str
    age_ms: int
    left_ms: int | None
    suspendable: bool


class App(NamedTuple):
    """One unfinished application. ``ask``: the size of its first request; ``over_limit``: of its user."""

    id: str
    queue: str
    pending: int
    ask: Resources | None
    activated: bool
    registered: bool
    wrapped: bool
    over_limit: bool
    order: tuple[int, int]
    deadline_ms: int
    tasks: tuple[Task, ...]
    reduces: int
    kind: str
    user: str
    left_alone: bool

    @property
    def running(self) -> tuple[Task, ...]:
        """Its containers without its master."""
        return tuple(each for each in self.tasks if each.kind != "am")


class Leaf(NamedTuple):
    """A queue: what it uses, its guarantee, and its maximum."""

    used: Resources
    guaranteed: Resources
    maximum: Resources
    ratio: float
    held_mib_ms: int


class Room(NamedTuple):
    """A node: its free capacity, its size, and the application that has reserved it ("": none)."""

    free: Resources
    total: Resources
    reserved: str


class Order(NamedTuple):
    """A request that yarnctl has sent to a task: ``spent_ms``: how long the task had run."""

    verb: Verb
    victim: str
    container: str
    at_ms: int
    spent_ms: int


class Picture(NamedTuple):
    """The cluster at one instant. ``orders``: all that were sent until then, without the withdrawn ones.

    ``gone``: containers of orders that had ended, and when. ``flags``: what a scenario has brought about.
    ``unanswered``: application -> when an answer of its master to yarnctl was last missing, or late.
    """

    at_ms: int
    apps: Mapping[str, App]
    queues: Mapping[str, Leaf]
    nodes: Mapping[str, Room]
    orders: tuple[Order, ...]
    gone: Mapping[str, int]
    flags: frozenset[str]
    unanswered: Mapping[str, int] = {}


_STATE = re.compile(r"/attempts/(attempt_[0-9]+_[0-9]+_[mr]_[0-9]+_[0-9]+)/state$")
_SIGNAL = re.compile(r"/containers/(container_[0-9_]+)/signal/GRACEFUL_SHUTDOWN$")
_REQUEST = re.compile(r"/(attempt_[0-9]+_[0-9]+_[mr]_[0-9]+_[0-9]+)/[^/]+\.request\.json$")
_WITHDRAWN = re.compile(r"/(attempt_[0-9]+_[0-9]+_[mr]_[0-9]+_[0-9]+)/[^/]+\.withdrawn$")
_PROXIED = re.compile(r"/proxy/(application_[0-9_]+)/")
_LEAVE = re.compile(r"/(application_[0-9_]+)/[0-9]{9}-(?:leave|idle)-[^/]+\.order$")


def _misstated(send: Any, change: Callable[[Any], None]) -> Any:
    """Send an answer of JSON after ``change``."""
    head: list[Any] = []

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            head.append(message)
            return
        body = msgspec.json.decode(message["body"])
        change(body)
        text = msgspec.json.encode(body)
        kept = [(name, value) for name, value in head[0]["headers"] if name.lower() != b"content-length"]
        length = (b"content-length", str(len(text)).encode())
        await send({**head[0], "headers": [*kept, length]})
        await send({**message, "body": text})

    return sent


def _production_first(body: Any) -> None:
    root = body["scheduler"]["schedulerInfo"]
    root["orderingPolicyInfo"] = "priority-utilization"
    for leaf in root["queues"]["queue"]:
        leaf["queuePriority"] = 10 if leaf["queueName"] == "production" else 0


def _short_heartbeat(body: Any) -> None:
    for row in body["properties"]:
        if row["key"].endswith("nodemanagers.heartbeat-interval-ms"):
            row["value"] = "500"


def _of_rival(scope: Any) -> bool:
    """Return whether a request is of the other daemon: its looks are not those of the one that is judged."""
    return any(name == b"host" and value.startswith(RIVAL_HOST.encode()) for name, value in scope["headers"])


class Wire:
    """The emulator's web, and what yarnctl sends through it. ``flags`` "down", "store-down": no answer.

    "wrong-order", "wrong-heartbeat": an answer misstates the order of queues, or the nodes' heartbeat.
    """

    def __init__(self, whole: AllInOne) -> None:
        self.whole = whole
        self.flags: set[str] = set()
        self.looks: list[int] = []
        self.orders: dict[str, Order] = {}
        self.gone: dict[str, int] = {}
        self._store_down_ms = self._rival_ms = 0
        self._asked: dict[int, tuple[str, int]] = {}
        self._unanswered: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole.web, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI: note a request of yarnctl, before and after its effect, or leave it without an answer."""
        if scope["type"] != "http":
            await self.whole.web(scope, receive, send)
            return
        path: str = scope["path"]
        query = scope["query_string"].decode()
        ours = "user.name=yarnctl" in query
        if ("down" in self.flags and ours and "/webhdfs/" not in path) or (
            "store-down" in self.flags and ours and path.startswith("/webhdfs/")
        ):
            await send({"type": "http.response.start", "status": 503, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return
        if ours and path.endswith("/ws/v1/cluster/scheduler") and not _of_rival(scope):
            self.looks.append(now_ms())
        if ours and scope["method"] != "GET":
            self._note(path)
        if "wrong-order" in self.flags and path.endswith("/ws/v1/cluster/scheduler"):
            send = _misstated(send, _production_first)
        if "wrong-heartbeat" in self.flags and path == "/conf":
            send = _misstated(send, _short_heartbeat)
        if match := _PROXIED.match(path):
            await self._proxied(match[1], scope, receive, send)
            return
        await self.whole.web(scope, receive, send)
        if ours and (target := parse_qs(query).get("destination")):
            self._renamed(target[0])

    async def _proxied(self, application: str, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request to a master on, and note if its answer is missing, an error, or late."""
        statuses: list[int] = []

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        began_ms, number = now_ms(), id(statuses)
        self._asked[number] = (application, began_ms)
        try:
            await self.whole.web(scope, receive, sent)
        finally:
            del self._asked[number]
            if statuses[:1] != [200] or now_ms() - began_ms > LATE_MS:
                self._unanswered[application] = now_ms()

    def _missing(self) -> dict[str, int]:
        """Return application -> when an answer of its master was last missing."""
        late = {name: now_ms() for name, at_ms in self._asked.values() if now_ms() - at_ms > LATE_MS}
        return {**self._unanswered, **late}

    def _note(self, path: str) -> None:
        if match := _STATE.search(path):
            self._of_attempt("kill", match[1])
        elif match := _SIGNAL.search(path):
            self._add("drain", match[1])
        elif match := _WITHDRAWN.search(path):
            for live in self.whole.masters.values():
                if (attempt := live.attempts.all.get(match[1])) is not None:
                    self.orders.pop(attempt.container_id, None)

    def _renamed(self, path: str) -> None:
        if match := _REQUEST.search(path):
            self._of_attempt("suspend", match[1])
        elif match := _LEAVE.search(path):
            words = (self.whole.work / f"hdfs{path}").read_text().split()[1:]
            for live in list(self.whole.masters.values()):
                if live.launch.application == match[1] and isinstance(live.actor, LiveDriver):
                    held = {str(facts.executor): facts.container for facts in live.actor.facts.values()}
                    names = {one.number: name for name, one in live.containers.mirrors.items()}
                    for word in words:
                        self._add("drain", names.get(held[word].number, ""))

    def _of_attempt(self, verb: Verb, name: str) -> None:
        for live in list(self.whole.masters.values()):
            if (attempt := live.attempts.all.get(name)) is not None and attempt.container_id:
                self._add(verb, attempt.container_id)

    def _add(self, verb: Verb, container: str) -> None:
        record = self.whole.site.manager.containers.get(container)
        if record is not None and container not in self.orders:
            spent_ms = self.whole.site.manager.driver.now_ms() - record.actor.granted_at_ms
            self.orders[container] = Order(verb, record.app.id, container, now_ms(), spent_ms)

    def picture(self) -> Picture:
        """Take a picture; on the emulator's thread."""
        manager = self.whole.site.manager
        at_ms = manager.now_ms()
        for name in self.orders:
            if name not in manager.containers:
                self.gone.setdefault(name, now_ms())
        masters = {live.launch.application: live for live in self.whole.masters.values()}
        apps = {}
        for app in manager.applications.values():
            live = masters.get(app.id)
            mirrors = {} if live is None else live.containers.mirrors
            tasks = tuple(_task(each, mirrors.get(each.id), at_ms) for each in app.containers.values())
            apps[app.id] = _app(self.whole, app, tasks)
        held = manager.actor.scheduler
        live_ms = Counter[str]()
        for each in held.live.values():
            live_ms[each.app.queue.name] += each.memory_mib * (at_ms - each.granted_at_ms)
        queues = {
            f"root.{one.name}": Leaf(
                Resources(one.used_mib, one.used_vcores),
                one.guaranteed,
                Resources(one.maximum_mib, one.maximum_vcores),
                one.ratio(),
                sum(one.usage_mib_ms.values()) + live_ms[one.name],
            )
            for one in held.queues.values()
        }
        nodes = {name: _room(self.whole, name) for name in manager.nodes}
        if "store-down" in self.flags:
            self._store_down_ms = now_ms()
        lately = ["store-down"] if now_ms() - self._store_down_ms < LOCK_MS else []
        locked = list(self._lock())
        if locked and "rival" in self.flags:
            self._rival_ms = now_ms()
        if now_ms() - self._rival_ms < LOCK_MS:
            lately.append("rival-lately")
        flags = frozenset((*self.flags, *locked, *lately))
        return Picture(
            now_ms(),
            apps,
            queues,
            nodes,
            tuple(self.orders.values()),
            dict(self.gone),
            flags,
            self._missing(),
        )

    def _lock(self) -> Iterable[str]:
        """Return "locked" if the newest term of the lock in HDFS is held."""
        folder = self.whole.work / "hdfs/yarnctl/lock"
        terms = sorted(folder.glob("term-*"), key=lambda one: int(one.name[5:])) if folder.exists() else []
        if terms:
            record = _read(terms[-1])
            if record and not record.get("released"):
                yield "locked"


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}  # being written
    return found


def _room(whole: AllInOne, name: str) -> Room:
    node = whole.site.manager.nodes[name].actor
    app = getattr(node.reserved, "app", None)
    reserved = "" if app is None else whole.site.manager.register.of(app).id
    free = Resources(node.free_mib, node.free_vcores)
    return Room(free, Resources(node.total_mib, node.total_vcores), reserved)


def _app(whole: AllInOne, app: AppRecord, tasks: tuple[Task, ...]) -> App:
    actor = app.actor
    first = actor.asks[0] if actor.asks else None
    told = msgspec.json.decode(bytes(app.submission.job))
    deadline = next((tag.split(":")[1] for tag in app.submission.tags if tag.startswith("deadline:")), "0")
    return App(
        id=app.id, queue=f"root.{app.queue.removeprefix('root.')}", pending=actor.pending,
        ask=None if first is None else Resources(first.memory_mib, first.vcores),
        activated=actor.activated, registered=app.attempt is not None and app.attempt.registered,
        wrapped=bool(told.get("runner", True) and told.get("cmdenv"))
        or any(tag.startswith("yarnctl-drain") for tag in app.submission.tags),
        over_limit=whole.site.manager.actor.scheduler._over_user_limit(actor), order=actor.order,
        deadline_ms=int(deadline), tasks=tasks,
        reduces=len(told["job"]["reduce_ms"]), kind=app.submission.kind, user=actor.user,
        left_alone=any(tag.startswith("yarnctl-leave-alone") for tag in app.submission.tags),
    )  # fmt: skip


def _task(record: ContainerRecord, mirror: Container | None, at_ms: int) -> Task:
    kind, left_ms, suspendable = "granted", None, False
    if record.is_master:
        kind = "am"
    elif mirror is not None and mirror.task >= 0:
        kind = {MAP: "map", REDUCE: "reduce"}.get(mirror.kind, "executor")
        if mirror.finish_at_ms < 1 << 60:
            left_ms = mirror.finish_at_ms - at_ms
        suspendable = kind == "reduce" and mirror.work_at_ms <= at_ms and not mirror.stage
    age_ms = at_ms - record.actor.granted_at_ms
    return Task(record.id, record.node.id, kind, age_ms, left_ms, suspendable)


# --- the oracle ---------------------------------------------------------------------------------------


class Claim(NamedTuple):
    """What yarnctl says of one application, and what may be used to judge it.

    ``changed``: the application's requests or containers, or an order, changed shortly before the answer.
    ``held_before``: what queues had held when the daemon began, in MiB x ms. ``recorded``: the pictures since
    the oldest record of YARN's that may be quoted.
    ``settings``: of the daemon. ``looks``: how many yarnctl had begun.
    """

    application: str
    item: Item
    claimed: Mapping[str, int]
    pictures: Sequence[Picture]
    settings: Daemon
    changed: bool
    looks: int
    held_before: Mapping[str, int]
    recorded: Sequence[Picture] = ()

    @property
    def code(self) -> str:
        """The reason's code."""
        return str(self.item["waiting"]["reason"]["code"])


class Daemon(NamedTuple):
    """What a daemon was told; ratios from 0 to 1. ``blocked``: it does not act when the scenario begins.

    ``left_alone``: queues and users that opt out.
    """

    observes: bool = False
    may_lose_ratio: float = 0.0
    room_within_ms: int = 4000
    in_flight_max: int = 4
    mix: bool = False
    research: tuple[str, ...] = ("root.research",)
    blocked: bool = False
    deadlines: bool = False
    left_alone: tuple[str, ...] = ()


def window(looks: Sequence[int], view_ms: int) -> int:
    """Return the begin (ms) of the look before the newest one of a view."""
    begun = [each for each in looks if each <= view_ms]
    return begun[-2] if len(begun) > 1 else view_ms - 10_000


def story(claim: Claim) -> str:
    """Return why no picture shows what a claim says, "" if one does."""
    found = [_one(claim, picture) for picture in reversed(claim.pictures)]
    return _quoted(claim) if not all(found) else " | ".join(dict.fromkeys(found))


def _one(claim: Claim, picture: Picture) -> str:
    kind, code = claim.item["waiting"]["kind"], claim.code
    app = picture.apps.get(claim.application)
    if app is None or not app.pending:
        return "it does not wait"
    if kind == "not-acting":
        return _not_acting(claim, picture)
    if kind in ("ordered", "would-order"):
        return _ordered(claim, picture, app)
    if kind == "next":
        return "" if claim.changed else "nothing has changed: it is decided"
    if kind == "awaited":
        return _awaited(claim, picture)
    if kind == "fits":
        return _fits(claim, picture, app)
    if kind == "limit" and code not in LIMITS:
        return f"{code} is not the code of a limit"
    truth = LIMITS.get(code) if kind == "limit" else REJECTED.get(code)
    if truth is None:
        return f"the oracle does not know {code}"
    if kind == "rejected" and code != "other-reasons" and (where := _served_without(claim, picture, app)):
        return where
    return truth(claim, picture, app)


def _served_without(claim: Claim, picture: Picture, app: App) -> str:
    """Return where its next request fits, although it is said to be rejected."""
    assert app.ask is not None
    leaf = picture.queues[app.queue]
    used = Resources(leaf.used[0] + app.ask[0], leaf.used[1] + app.ask[1])
    is_full = not fits(used, leaf.maximum) and not claim.settings.deadlines  # there its own queue gives
    if is_full or app.over_limit or not app.activated:
        return "its own limit keeps it pending"
    needs = sum(
        each.pending for each in picture.apps.values() if each.queue == app.queue and each.order <= app.order
    )
    free = [name for name, room in picture.nodes.items() if fits(app.ask, room.free) and not room.reserved]
    return f"it fits on {free}" if len(free) >= needs else ""


def _not_acting(claim: Claim, picture: Picture) -> str:
    code, flags = claim.code, picture.flags
    if code == "lock-held-elsewhere":
        return "" if "rival-lately" in flags else "no other process holds the lock"
    wanted = {
        "paused": "paused",
        "cluster-fault": "down",
        "cluster-unseen": "down",
        "hdfs-unwritable": "store-down",
        "loop-failed": "disk-full",
    }
    if code in wanted:
        return (
            ""
            if wanted[code] in flags or (code == "cluster-unseen" and claim.looks <= STARTING)
            else "it is not so"
        )
    if code in STARTS:
        return "" if claim.looks <= STARTING or "back" in flags else "it has started long ago"
    return f"the oracle does not know {code}"


STARTS = ("manager-settling", "queues-unread", "folders-not-seen", "preemption-unknown", "lock-ran-out")
STARTING = 6
"""Looks after which a daemon has started."""


def _ordered(claim: Claim, picture: Picture, app: App) -> str:
    waiting = claim.item["waiting"]
    count = claim.item["expected"] if waiting["kind"] == "ordered" else claim.item["would_order"]
    sources = sources_in(waiting["text"])
    if not re.search(rf"\b{count} container", waiting["text"]) or not count:
        return f"{count} containers are expected"
    if count > app.pending:
        return f"{count} containers for {app.pending} requests"
    if waiting["kind"] == "would-order":
        if picture.orders:
            return "it has sent orders"
        held = {name: len(one.running) for name, one in picture.apps.items()}
        return "" if all(n <= held.get(victim, 0) for victim, n in sources.items()) else "no such tasks run"
    alive, sent = Counter[str](), Counter[str]()
    first_ms = claim.pictures[0].at_ms
    for order in picture.orders:
        gone_ms = picture.gone.get(order.container)
        alive[order.victim] += gone_ms is None
        sent[order.victim] += gone_ms is None or gone_ms >= first_ms - 2000
    for victim, n in claim.claimed.items():
        if not alive[victim] <= n <= sent[victim]:
            return (
                f"{n} orders to {victim}; sent {sent[victim]}, of which {alive[victim]} have their container"
            )
    return "" if sum(sources.values()) and set(sources) <= set(claim.claimed) else "no source"


def _sent(pictures: Sequence[Picture], victim: str) -> tuple[int, int]:
    """Return the least number of orders whose containers live, and the most that may be open, by victim.

    An order is open until yarnctl has seen who was granted its container, two seconds at most.
    """
    first_ms, alive, sent = pictures[0].at_ms, [], []
    for picture in pictures:
        ends = [picture.gone.get(order.container) for order in picture.orders if order.victim == victim]
        alive.append(ends.count(None))
        sent.append(sum(end is None or end >= first_ms - 2000 for end in ends))
    return min(alive), max(sent)


def sources_in(text: str) -> dict[str, int]:
    """Return the applications and numbers of orders that a sentence names."""
    return {name: int(n) for name, n in re.findall(r"(application_[0-9_]+) \(([0-9]+)\)", text)}


def _awaited(claim: Claim, picture: Picture) -> str:
    count = int(claim.item["waiting"]["text"].split()[0])
    within_ms = claim.settings.room_within_ms + SOON_MS
    soon = [
        task
        for app in picture.apps.values() if app.queue in claim.settings.research
        for task in app.running if task.left_ms is not None and task.left_ms <= within_ms
    ]  # fmt: skip
    return "" if 0 < count <= len(soon) else f"{len(soon)} tasks end in time"


def _fits(claim: Claim, picture: Picture, app: App) -> str:
    text = claim.item["waiting"]["text"].split(WORDS)[0]
    if int(text.split()[0]) != app.pending:
        return f"{app.pending} containers are pending"
    named = re.findall(r"\b(node[0-9]+:[0-9]+)", text)
    if not named:
        first_ms = claim.pictures[0].at_ms
        freed = [o for o in picture.orders if picture.gone.get(o.container, picture.at_ms) >= first_ms - 2000]
        return "" if freed else "no order frees anything"
    assert app.ask is not None
    for name in named:
        if not fits(app.ask, picture.nodes[name].free):
            return f"{name} has {picture.nodes[name].free}"
    return ""


WORDS = "YARN reports at "
RECORD_MS = 15_000
"""A record of a node is quoted for ten seconds, and is of a heartbeat before."""
_QUOTED = re.compile(WORDS + r"(\S+), node (\S+): '(.*)'$")
_FULL = "Initial check: node resource is insufficient for minimum allocation"
_OTHERWISE: Mapping[str, Callable[[Picture, str, App], bool]] = {
    "Queue does not need more resource": lambda picture, at, app: False,  # one that waits needs more
    "Queue hits max-capacity limit": lambda picture, at, app: (
        at == app.queue and any(map(operator.ge, picture.queues[at].used, picture.queues[at].maximum))
    ),
    "Queue hits user max-capacity limit": lambda picture, at, app: at == app.id and app.over_limit,
}


def _quoted(claim: Claim) -> str:
    """Return why YARN has not said what is quoted: no picture since its record shows it so."""
    text = claim.item["waiting"]["text"]
    if WORDS not in text:
        return ""
    found = _QUOTED.search(text)
    if found is None:
        return "YARN's words are cut"
    for picture in claim.recorded:
        app, room = picture.apps.get(claim.application), picture.nodes.get(found[2])
        if app is None or app.ask is None or room is None:
            continue
        if _was_said(found, picture, app, app.ask, room.free):
            return ""
    return f"YARN has not said it: {found[0]}"


def _was_said(words: re.Match[str], picture: Picture, app: App, ask: Resources, free: Resources) -> bool:
    at, node, said = words.groups()
    if said == _FULL:
        return at == "root" and min(free) <= 0
    if said in _OTHERWISE:
        return _OTHERWISE[said](picture, at, app)
    sizes = f"required=<memory:{ask[0]}, vCores:{ask[1]}> available=<memory:{free[0]}, vCores:{free[1]}>"
    return bool(at == node and said.endswith(sizes) and not fits(ask, free))


Truth = Callable[[Claim, Picture, App], str]


def _at_maximum(claim: Claim, picture: Picture, app: App) -> str:
    leaf = picture.queues[app.queue]
    assert app.ask is not None
    used = Resources(leaf.used[0] + app.ask[0], leaf.used[1] + app.ask[1])
    return "" if not fits(used, leaf.maximum) else f"{used} is below the maximum {leaf.maximum}"


def _too_large(claim: Claim, picture: Picture, app: App) -> str:
    assert app.ask is not None
    return "a node is large enough" if any(fits(app.ask, one.total) for one in picture.nodes.values()) else ""


LIMITS: Mapping[str, Truth] = {
    "queue-at-maximum": _at_maximum,
    "user-at-limit": lambda _c, _p, app: "" if app.over_limit else "its user is below the limit",
    "not-activated": lambda _c, _p, app: "it is activated" if app.activated else "",
    "no-node-large-enough": _too_large,
}


def _no_task(claim: Claim, picture: Picture, app: App) -> str:
    """The counts are those of the applications' containers, and each cause is so."""
    rows = claim.item["waiting"]["not_chosen"]
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row["application"]] += row["tasks"]
    for name, count in sums.items():
        one = picture.apps.get(name)
        if one is None or len(one.running) != count:
            return f"{count} tasks of {name}, it runs {0 if one is None else len(one.running)}"
    for row in rows:
        if found := _cause(claim, picture, row):
            return f"{row['reason']['code']}: {found}"
    return "" if rows else "no task is counted"


def _cause(claim: Claim, picture: Picture, row: Item) -> str:
    victim, code, count = picture.apps[row["application"]], row["reason"]["code"], row["tasks"]
    of_kind = [each for each in victim.running if row["kind"] in ("task", each.kind)]
    if len(of_kind) < count and row["kind"] != "task":
        return f"{len(of_kind)} {row['kind']}s run"
    match code:
        case "map":
            return "" if row["kind"] == "map" else "no map"
        case "no-runner-carried" | "no-streaming-reducer" | "no-drain-tag":
            return "it carries the runner" if victim.wrapped else ""
        case "no-reduces":
            return "it has reduces" if victim.reduces else ""
        case "left-alone":
            return (
                ""
                if victim.left_alone or {victim.queue, victim.user} & {*claim.settings.left_alone}
                else "it takes part"
            )
        case "other-kind":
            return "" if victim.kind != "MAPREDUCE" and not claim.settings.mix else f"it is {victim.kind}"
        case "not-checkpointable":
            able = sum(each.suspendable and each.age_ms > SOON_MS for each in of_kind)
            return "" if count <= len(of_kind) - able else f"{able} of them reduce"
        case "already-ordered":
            sent = sum(order.victim == victim.id for order in picture.orders)
            return "" if count <= sent else f"{sent} orders were sent"
        case "starting":
            # Its master reports a task once it is launched; yarnctl sees containers and tasks in two answers.
            young = sum(each.kind == "granted" or each.age_ms < 10 * SOON_MS for each in victim.running)
            young += 0 if claim.settings.mix else sum(each.kind == "map" for each in victim.running)
            young += sum(each.left_ms is not None and each.left_ms < 2 * SOON_MS for each in victim.running)
            return "" if count <= young else f"{young} start"
        case "cost" | "ends-soon":
            return _ends(claim, of_kind, count)
        case "loss-budget" | "job-loss-budget":
            return _budget(claim, picture, of_kind)
        case "not-observed" | "late" if is_busy(claim.pictures):
            return ""  # this machine kept the emulator waiting, and so the emulator its caller
        case "driver-starting" | "answer-late" | "configuration-unread" | "not-observed" | "late":
            young = any(each.kind == "am" and each.age_ms < 60 * SOON_MS for each in victim.tasks)
            return "" if not victim.registered or young else "it answers"
        case "unreachable":
            since_ms = claim.pictures[0].at_ms - SILENT_MS
            is_missing = picture.unanswered.get(victim.id, 0) >= since_ms
            return "" if is_missing or is_busy(claim.pictures) else "its master answers every request"
        case "job-budget":
            return "" if _sent(claim.pictures, victim.id)[1] else "no order is open"
        case (
            "too-small"
            | "executor-stays"
            | "not-in-time"
            | "just-resumed"
            | "remaining-unknown"
            | "just-tried"
        ):
            return TASKS[code](claim, picture, of_kind)
    return f"the oracle does not know {code}"


def is_busy(pictures: Sequence[Picture]) -> bool:
    """Return whether pictures came late: the emulator's thread stood still meanwhile."""
    return any(b.at_ms - a.at_ms > BUSY_MS for a, b in pairwise(pictures))


def _ends(claim: Claim, tasks: Sequence[Task], count: int) -> str:
    most_ms = 3 * SOON_MS + max(claim.settings.room_within_ms, 10 * SOON_MS)
    soon = sum(each.left_ms is not None and each.left_ms <= most_ms for each in tasks)
    return "" if count <= soon else f"{soon} end soon"


HELD_LATE_MS = 10 * SOON_MS
"""What research holds is read every five seconds, a look earlier (``attach.observing.held_time``)."""
LEAVE_MS = 3 * SOON_MS
"""A kill also loses what its task does until the container is gone."""


def _budget(claim: Claim, picture: Picture, tasks: Sequence[Task]) -> str:
    """The cheapest loss, with what was lost, is more than the share of what research has held."""
    ratio = claim.settings.may_lose_ratio
    if not ratio:
        return ""
    queues = claim.settings.research
    held = sum(picture.queues[name].held_mib_ms - claim.held_before.get(name, 0) for name in queues)
    lost = sum(order.spent_ms for order in picture.orders if order.verb == "kill")
    least = min((each.age_ms for each in tasks), default=0)
    allowed = ratio * (held / 1024 - (len(tasks) + 1) * HELD_LATE_MS)
    return "" if lost + least + LEAVE_MS > allowed else f"{lost} and {least} ms of {allowed:.0f} ms"


TASKS: Mapping[str, Callable[[Claim, Picture, Sequence[Task]], str]] = {
    "too-small": lambda claim, picture, tasks: (
        "" if max((app.ask or (0, 0))[0] for app in picture.apps.values()) > 1024 else "one is enough"
    ),
    "executor-stays": lambda claim, picture, tasks: (
        "" if all(t.kind == "executor" for t in tasks) else "none"
    ),
    "not-in-time": lambda claim, picture, tasks: "" if claim.settings.mix else "no lever has a time",
    "just-resumed": lambda claim, picture, tasks: "" if picture.gone else "nothing was suspended",
    "remaining-unknown": lambda claim, picture, tasks: (
        "" if any(t.left_ms is None or t.age_ms < 5 * SOON_MS for t in tasks) else "it works"
    ),
    "just-tried": lambda claim, picture, tasks: "",
}


def _not_over(claim: Claim, picture: Picture, app: App) -> str:
    """No research queue uses more than its guarantee and a tenth (what orders free is gone already)."""
    over = [
        name for name in claim.settings.research
        if (leaf := picture.queues[name]).used[0] > leaf.guaranteed[0] * 1.1 + _leaving(picture, name)
    ]  # fmt: skip
    return f"{over} are over their guarantee" if over else ""


def _shut(claim: Claim, picture: Picture, app: App) -> str:
    """The hour has not come, and a preemptable queue is over its guarantee."""
    opens = [int(flag.split(":")[1]) for flag in picture.flags if flag.startswith("opens:")]
    if not opens or picture.at_ms >= opens[0]:
        return "its queue is open"
    said = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(opens[0] // 1000))
    if said not in claim.item["waiting"]["text"]:
        return f"it opens at {said}"
    return "no queue is over its guarantee" if not _not_over(claim, picture, app) else ""


def _has_guarantee(claim: Claim, picture: Picture, app: App) -> str:
    """Its queue has its guarantee, with what open orders free for it."""
    leaf = picture.queues[app.queue]
    coming = sum(o.container not in picture.gone for o in picture.orders)
    return "" if leaf.used[0] + 1024 * coming >= leaf.guaranteed[0] else f"it has {leaf.used}"


def _leaving(picture: Picture, queue: str) -> int:
    alive = [o for o in picture.orders if o.container not in picture.gone]
    return 1024 * sum(picture.apps[o.victim].queue == queue for o in alive if o.victim in picture.apps)


def _no_job(claim: Claim, picture: Picture, app: App) -> str:
    """No application in the preemptable queues runs tasks that may be taken."""
    held = [one for one in picture.apps.values() if one.queue in claim.settings.research and one.running]
    if claim.settings.deadlines:  # those that YARN serves later, or that are less urgent
        held = [one for one in held if one.order > app.order and _is_less_urgent(one, app)]
    return f"{[one.id for one in held]} run tasks" if held else ""


def _is_less_urgent(other: App, app: App) -> bool:
    """Return whether another application has a later deadline, or none."""
    return bool(app.deadline_ms) and (not other.deadline_ms or other.deadline_ms > app.deadline_ms)


def _other_first(claim: Claim, picture: Picture, app: App) -> str:
    """YARN would serve another application first: it waits, and its queue's ratio (or rank) is lower."""
    found = re.search(r"(application_[0-9_]+) in queue (\S+)", claim.item["waiting"]["text"])
    other = None if found is None else picture.apps.get(found[1])
    if other is None or not other.pending:
        return "the other one does not wait"
    mine, theirs = picture.queues[app.queue].ratio, picture.queues[other.queue].ratio
    return "" if theirs <= mine or other.order < app.order else f"ratios {theirs} and {mine}"


def _takes_back(claim: Claim, picture: Picture, app: App) -> str:
    found = re.search(r"queue (\S+) first", claim.item["waiting"]["text"])
    assert found is not None
    leaf, mine = picture.queues[found[1]], picture.queues[app.queue]
    after = (leaf.used[0] - 1024 - _leaving(picture, found[1])) / leaf.guaranteed[0]
    return "" if after < mine.used[0] / mine.guaranteed[0] else "it would be served after"


def _would_fall(claim: Claim, picture: Picture, app: App) -> str:
    found = re.search(r"queue (\S+) would", claim.item["waiting"]["text"])
    assert found is not None
    leaf = picture.queues[found[1]]
    return "" if leaf.used[0] - 1024 - _leaving(picture, found[1]) < leaf.guaranteed[0] else "it stays above"


def _in_flight(claim: Claim, picture: Picture, app: App) -> str:
    sent = [
        o for o in picture.orders if picture.gone.get(o.container, picture.at_ms) >= claim.pictures[0].at_ms
    ]
    return "" if len(sent) >= claim.settings.in_flight_max else f"{len(sent)} orders are open"


def _aside(claim: Claim, picture: Picture, app: App) -> str:
    """Containers that orders freed were granted to other applications, and it is not resumed since."""
    given = re.findall(r"(application_[0-9_]+)", claim.item["waiting"]["text"])
    freed = {o.container for o in picture.orders if o.container in picture.gone}
    if "resumed" in picture.flags:
        return "it was resumed"
    return "" if len(freed) >= 3 and app.id not in given else f"{len(freed)} were freed"


def _more_urgent(claim: Claim, picture: Picture, app: App) -> str:
    others = [one for one in picture.apps.values() if one.pending and one.id != app.id and one.deadline_ms]
    urgent = [one for one in others if not app.deadline_ms or one.deadline_ms < app.deadline_ms]
    return "" if urgent else "no more urgent application waits"


def _priority_pending(claim: Claim, picture: Picture, app: App) -> str:
    """A less urgent application with tasks is before it in YARN's own order."""
    named = re.search(r"application_[0-9_]+", claim.item["waiting"]["text"])
    other = picture.apps.get(named[0]) if named else None
    if other is None or not _is_less_urgent(other, app) or not other.running:
        return "no such less urgent application has tasks"
    return "" if other.order < app.order else "YARN serves it before that one"


def _others(claim: Claim, picture: Picture, app: App) -> str:
    others = [one for one in picture.apps.values() if one.pending and one.id != app.id]
    mine = picture.queues[app.queue].ratio
    first = [one for one in others if one.order < app.order or picture.queues[one.queue].ratio <= mine]
    return "" if first else "no other application waits"


def _on_its_way(claim: Claim, picture: Picture, app: App) -> str:
    return "open orders must be shown as ordered"


REJECTED: Mapping[str, Truth] = {
    "no-task-may-stop": _no_task,
    "no-job-may-give": _no_job,
    "no-queue-over-guarantee": _not_over,
    "room-goes-to": _other_first,
    "queue-takes-back": _takes_back,
    "queue-below-guarantee": _would_fall,
    "too-many-in-flight": _in_flight,
    "standing-aside": _aside,
    "outside-hours": _shut,
    "no-queue-gives": _not_over,
    "queue-at-guarantee": _has_guarantee,
    "more-urgent-waits": _more_urgent,
    "priority-pending": _priority_pending,
    "others-first": _others,
}
