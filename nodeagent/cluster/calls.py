"""One request to the API server in the words of its rights: verb, resource, object. Pure.

From these come the URL, the label of metrics, and the sentence that names a missing right.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import ClassVar
from urllib.parse import quote, urlencode

from nodeagent.core.errors import NodeAgentError

_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, GONE = 401, 403, 404, 409, 410
TOO_MANY, INVALID = 429, 422
MAX_RETRY_AFTER_S = 300.0
"""A server that asks for more than this is asked again all the same: an hour of silence would hide a fault."""

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""What to accept when the metadata of an object, or of each of a list, is enough."""


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked. label: the object in metrics, e.g. `device_info`. group: `` = core v1, else `group/version`.

    name: empty for a whole collection, as in create, list and watch. content_type: of the body.
    resource: a plural name, or for what is no resource its path, e.g. `/version`.
    """

    verb: str
    resource: str
    label: str
    namespace: str = ""
    name: str = ""
    group: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    accept: str = "application/json"

    @property
    def method(self) -> str:
        """The HTTP method."""
        return _METHODS[self.verb]

    @property
    def path(self) -> str:
        """Path and query below the server's address."""
        if self.resource.startswith("/"):
            return self.resource
        parts = ["apis", *self.group.split("/")] if self.group else ["api", "v1"]
        if self.namespace:
            parts += ["namespaces", self.namespace]
        parts += [part for part in (self.resource, self.name, self.subresource) if part]
        path = "/" + "/".join(quote(part, safe="") for part in parts)
        return f"{path}?{urlencode(self.query)}" if self.query else path

    @property
    def right(self) -> str:
        """The right that this needs, as an administrator would say it."""
        resource = "/".join(part for part in (self.resource, self.subresource) if part)
        where = f" in the namespace {self.namespace}" if self.namespace else " in the whole cluster"
        return f"the verb {self.verb} on {resource}{where}"

    def __str__(self) -> str:
        """`PUT of kube-system/name`, for messages."""
        name = "/".join(part for part in (self.namespace, self.name or self.resource) if part)
        return f"{self.method} of {name}"


class NoAnswerError(NodeAgentError):
    """No complete answer came back: whether the server did what it was asked is not known."""

    code: ClassVar[str] = "NA504"


class RefusalError(NodeAgentError):
    """The server answered with a status other than 2xx.

    status: the HTTP status. retry_after_s: how long the server wants to be left alone, 0 when it does not say.
    """

    code: ClassVar[str] = "NA505"

    def __init__(self, call: Call, status: int, message: str, retry_after_s: float = 0.0) -> None:
        detail = f": {message}" if message else ""
        super().__init__(f"{call} was answered with status {status}{detail}", _hint(call, status, message))
        self.status = status
        self.retry_after_s = retry_after_s


def _hint(call: Call, status: int, message: str) -> str:
    if status == FORBIDDEN:
        return f"grant {call.right}"
    if status == UNAUTHORIZED:
        return "the token or certificate is not valid (any more); it was read again and refused again"
    if status == INVALID and "immutable" in message:
        return f"it is immutable; delete it: kubectl delete {call.resource} -n {call.namespace} {call.name}"
    if status == NOT_FOUND and call.verb == "create":
        return f"is there a namespace {call.namespace}?"
    return ""


def retry_after_s(headers: Mapping[str, str], document: object, now_unix_s: float) -> float:
    """How long to wait by the `Retry-After` header (seconds or a date) or the Status object; 0 = not said.

    Never more than MAX_RETRY_AFTER_S. Anything that cannot be read counts as not said.
    """
    text = headers.get("Retry-After", "").strip()
    wanted_s = 0.0
    if text.isascii() and text.isdigit():
        wanted_s = float(text[:9])
    elif text:
        try:
            wanted_s = parsedate_to_datetime(text).timestamp() - now_unix_s
        except (ValueError, TypeError, OverflowError):
            wanted_s = 0.0
    elif isinstance(document, dict) and isinstance(details := document.get("details"), dict):
        said = details.get("retryAfterSeconds")
        wanted_s = float(said) if isinstance(said, int) and not isinstance(said, bool) else 0.0
    return min(max(0.0, wanted_s), MAX_RETRY_AFTER_S)


def status_message(document: object) -> str:
    """The sentence of a Status object; empty when it is none."""
    message = document.get("message") if isinstance(document, dict) else None
    return message if isinstance(message, str) else ""


def version_of(obj: Mapping[str, object]) -> str:
    """`metadata.resourceVersion` of an object or a list; empty when it has none."""
    metadata = obj.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""
