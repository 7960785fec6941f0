"""Submission: POST new-application and POST /apps, as in real Hadoop.

Law: the job itself is text in one environment entry of the AM's container and passes unread. Whether the
text is JSON is looked at once, because it travels on inside JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import field

from emulator.live.manager.service import LiveResourceManager, Refused
from emulator.live.manager.state import Submission
from emulator.live.rest.cluster_info import vector
from emulator.live.rest.dialect import JSON_KIND
from emulator.live.wire.hadoop_request import bad, body_of, caller
from emulator.live.wire.web import Reply, Request, json_reply
from yarnctl.units import Resources

ENTRY = "YARN_EMULATOR_JOB"
MOST_TAGS, LONGEST_TAG = 10, 100
LARGEST_BODY = 12 << 20


class _Pair(msgspec.Struct):
    key: str
    value: str = ""


class _Environment(msgspec.Struct):
    entry: list[_Pair] | _Pair = []


class _Launch(msgspec.Struct):
    environment: _Environment = field(default_factory=_Environment)


class _Size(msgspec.Struct):
    memory: int = 1024
    vcores: int = field(name="vCores", default=1)


class _Tags(msgspec.Struct):
    tag: list[str] | str = []


class Context(msgspec.Struct):
    """ApplicationSubmissionContextInfo: the fields that count here."""

    application: str = field(name="application-id", default="")
    name: str = field(name="application-name", default="")
    kind: str = field(name="application-type", default="YARN")
    queue: str = "default"
    priority: int = 0
    tags: _Tags | list[str] | str | None = field(name="application-tags", default=None)
    size: _Size = field(name="resource", default_factory=_Size)
    most_attempts: int = field(name="max-app-attempts", default=0)
    launch: _Launch = field(name="am-container-spec", default_factory=_Launch)


def new_application(manager: LiveResourceManager, request: Request) -> dict[str, Any]:
    """Hand out an id."""
    caller(request)
    return {
        "application-id": manager.new_application(),
        "maximum-resource-capability": vector(*manager.largest_node()),
    }


def submit(manager: LiveResourceManager, request: Request, url: str) -> Reply:
    """Accept an application: 202 and where it is."""
    user = caller(request)
    context = body_of(request, Context, LARGEST_BODY)
    if not context.application:
        raise bad("Error could not parse application id")
    size = Resources(context.size.memory, context.size.vcores)
    if size.memory_mib <= 0 or size.vcores <= 0:
        raise bad(f"the AM's resource {size} is not positive")
    submission = Submission(
        application=context.application,
        name=context.name[:1000],
        kind=context.kind[:20],
        queue=context.queue,
        user=user,
        priority=context.priority,
        tags=_tags(context.tags),
        am_size=size,
        max_attempts=context.most_attempts,
        job=_job(context.launch.environment.entry),
    )
    try:
        app = manager.submit(submission)
    except Refused as why:
        raise bad(str(why)) from None
    where = f"{url}/ws/v1/cluster/apps/{app.id}"
    return json_reply(None, 202)._replace(body=b"", kind=JSON_KIND, headers=(("Location", where),))


def _tags(given: _Tags | list[str] | str | None) -> tuple[str, ...]:
    """Return the tags as YARN keeps them: lower case, each once, sorted."""
    if isinstance(given, _Tags):
        given = given.tag
    rows = [] if given is None else given.split(",") if isinstance(given, str) else given
    tags = sorted({tag.strip().lower() for tag in rows if tag.strip()})
    if len(tags) > MOST_TAGS:
        raise bad(f"Too many applicationTags, a maximum of only {MOST_TAGS} are allowed!")
    for tag in tags:
        if len(tag) > LONGEST_TAG:
            raise bad(f"Tag {tag[:40]}... is too long, maximum allowed length of a tag is {LONGEST_TAG}")
        if not tag.isascii() or "," in tag:
            raise bad("A tag can only have ASCII characters!")
    return tuple(tags)


def _job(entries: list[_Pair] | _Pair) -> msgspec.Raw:
    """Return the job's text; an application without one has the empty job."""
    rows = entries if isinstance(entries, list) else [entries]
    text = next((row.value for row in rows if row.key == ENTRY), "{}").encode()
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise bad(f"{ENTRY} is no JSON: {error}") from None
    return msgspec.Raw(text)
