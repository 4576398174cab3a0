"""What the API server says when it is asked for the self-check. An error of ours is an answer too: it is judged."""

from collections.abc import Mapping, Sequence

from nodeagent.cluster.calls import NOT_FOUND, Call, RefusalError
from nodeagent.cluster.client import ApiClient
from nodeagent.core.clock import Clock
from nodeagent.core.errors import NodeAgentError
from nodeagent.daemon.selfcheck.cluster_checks import ServerSaid
from nodeagent.daemon.selfcheck.rights import Right

_LABEL = "self_check"


def ask_server(client: ApiClient, clock: Clock) -> ServerSaid | NodeAgentError:
    """Its version, and what time it is there."""
    asked = clock.now()
    try:
        reply = client.ask(Call("get", "/version", _LABEL))
    except NodeAgentError as error:
        return error
    return ServerSaid(str(reply.document.get("gitVersion", "")), reply.headers.get("Date", ""), asked, clock.now())


def read_object(
    client: ApiClient, resource: str, namespace: str, name: str
) -> Mapping[str, object] | NodeAgentError | None:
    """One object; None when there surely is none."""
    try:
        return client.send(Call("get", resource, _LABEL, namespace, name))
    except RefusalError as refusal:
        return None if refusal.status == NOT_FOUND else refusal
    except NodeAgentError as error:
        return error


def denied_of(client: ApiClient, rights: Sequence[Right]) -> list[Right] | NodeAgentError:
    """The rights that we do not have, by one SelfSubjectAccessReview each."""
    call = Call("create", "selfsubjectaccessreviews", _LABEL, group="authorization.k8s.io/v1")
    try:
        return [right for right in rights if not _allowed(client.send(call, right.review()))]
    except NodeAgentError as error:
        return error


def _allowed(review: Mapping[str, object]) -> bool:
    status = review.get("status")
    return isinstance(status, dict) and status.get("allowed") is True
