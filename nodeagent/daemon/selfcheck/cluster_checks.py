"""Verdicts on what a cluster says of itself and of us. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from nodeagent.cluster.calls import FORBIDDEN, UNAUTHORIZED, RefusalError
from nodeagent.core.errors import NodeAgentError, NodeNameError
from nodeagent.core.instant import Instant
from nodeagent.core.settings import PublishSettings
from nodeagent.core.settings_load import check_node_name
from nodeagent.daemon.selfcheck.check import Check, fail, failed, ok, skipped, warn
from nodeagent.publish.other_writer import other_writer

NODE_NAME, API_SERVER, CLOCK, OTHER_WRITER = "node-name", "api-server", "clock", "other-writer"

SKEW_WARN_S, SKEW_FAIL_S = 5.0, 60.0
"""Volcano ignores an object whose `UpdateTime` is not later than the last one it used (device-info 11.2). So a node
whose clock ran ahead is not heard after its clock was set right, for as long as it had been ahead."""


@dataclass(frozen=True, slots=True)
class ServerSaid:
    """Answer of the API server to the question for its version. date: its `Date` header, empty = none.

    asked, answered: our clock before and after.
    """

    version: str
    date: str
    asked: Instant
    answered: Instant


def check_name(name: str, shadow: bool) -> Check | None:
    """What is wrong with a node name by itself; None = nothing."""
    try:
        check_node_name(name, shadow)
    except NodeNameError as error:
        return failed(NODE_NAME, error)
    return None


def check_node(name: str, node: Mapping[str, object] | NodeAgentError | None) -> Check:
    """node: the Node object, None = there is none of that name, or why that is not known. name: a valid one."""
    if node is None:
        return fail(
            NODE_NAME,
            f"the cluster has no node {name!r}: what we publish would be read by nobody",
            "correct NODE_NAME or node.name; `kubectl get nodes` lists the names",
        )
    if is_forbidden(node):
        return skipped(NODE_NAME, f"{name}; whether there is such a node we may not ask (get on nodes)")
    if isinstance(node, NodeAgentError):
        return warn(NODE_NAME, f"{name}; whether there is such a node is not known: {node.sentence}", node.hint)
    return ok(NODE_NAME, f"the node {name} exists")


def is_forbidden(found: object) -> bool:
    """The server says that we have no right; which one is missing, the check of rights tells."""
    return isinstance(found, RefusalError) and found.status == FORBIDDEN


def check_server(where: str, said: ServerSaid | NodeAgentError) -> Check:
    """Whether the API server answers at all. where: for people."""
    if isinstance(said, RefusalError) and said.status != UNAUTHORIZED:
        return warn(API_SERVER, f"{where} answers, but not what version it is: {said.sentence}", said.hint)
    if isinstance(said, NodeAgentError):
        return failed(API_SERVER, said)
    return ok(API_SERVER, f"{where}, version {said.version}")


def no_use_to_ask(said: ServerSaid | NodeAgentError) -> str:
    """Why further questions to this server are pointless; empty when they are not."""
    if isinstance(said, ServerSaid) or (isinstance(said, RefusalError) and said.status != UNAUTHORIZED):
        return ""
    return "the API server cannot be asked"


def clock_ahead_s(said: ServerSaid) -> float | None:
    """How many seconds our clock is at least ahead of the server's, negative: behind; None without a usable date.

    The header has whole seconds and was written at some moment between question and answer. As long as both clocks
    may agree this is 0.
    """
    try:
        date = parsedate_to_datetime(said.date)
    except (ValueError, TypeError, OverflowError):
        return None
    server_s = date.replace(tzinfo=date.tzinfo or timezone.utc).timestamp()
    at_least = said.asked.wall_ms / 1000 - (server_s + 1)
    at_most = said.answered.wall_ms / 1000 - server_s
    if at_least > 0:
        return at_least
    return min(at_most, 0.0)


def check_clock(said: ServerSaid | NodeAgentError) -> Check:
    """Whether our wall clock agrees with the server's."""
    ahead_s = None if isinstance(said, NodeAgentError) else clock_ahead_s(said)
    if ahead_s is None:
        return skipped(CLOCK, "the API server did not tell its time")
    if abs(ahead_s) <= SKEW_WARN_S:
        return ok(CLOCK, "agrees with the clock of the API server")
    way = "ahead of" if ahead_s > 0 else "behind"
    detail = f"our clock is {abs(ahead_s):.0f} s {way} the one of the API server"
    hint = "synchronise the clock of this node (chronyc tracking, timedatectl): schedulers ignore times that go back"
    return (fail if abs(ahead_s) > SKEW_FAIL_S else warn)(CLOCK, detail, hint)


def check_other_writer(
    publish: PublishSettings, obj: Mapping[str, object] | NodeAgentError | None, now: Instant
) -> Check:
    """obj: the object that schedulers read, None = there is none yet, or why it could not be read."""
    shadow = publish.mode == "shadow"
    if is_forbidden(obj):
        return skipped(OTHER_WRITER, "we may not read the object (get on configmaps)")
    if isinstance(obj, NodeAgentError):
        return (skipped if shadow else warn)(OTHER_WRITER, f"not known: {obj.sentence}", obj.hint)
    writer = None if obj is None else other_writer(obj, now.wall_ms)
    if writer is None:
        return ok(OTHER_WRITER, "nobody else has written our object lately")
    at = datetime.fromtimestamp(writer.at_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    if shadow:
        return ok(OTHER_WRITER, f"{writer.name} is in charge, last write {at}; we write a shadow beside it")
    detail = f"{writer.name} writes our object, last at {at}"
    if publish.other_writer == "overwrite":
        return warn(OTHER_WRITER, f"{detail}; each of us overwrites the other", f"stop {writer.name} on this node")
    return fail(
        OTHER_WRITER,
        f"{detail}; we do not begin before it has been quiet for 15 minutes",
        f"stop {writer.name} on this node, or let us run beside it with publish.mode=shadow",
    )
