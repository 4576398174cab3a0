"""What a place to publish to must be able to do."""

from typing import Protocol

from nodeagent.core.errors import PublishError


class ObjectChanged(PublishError):
    """Somebody else changed the object since our last write; nothing was written.

    obj: the object as it is now, empty = there is none. The next write replaces it, the next deletion removes it.
    """

    def __init__(self, sentence: str, obj: dict[str, object]) -> None:
        super().__init__(sentence, "it is read first, then written")
        self.obj = obj


class LaterError(PublishError):
    """A target did not take the object and may have said when to come again. retry_after_s: 0 = it did not say."""

    def __init__(self, sentence: str, hint: str, retry_after_s: float) -> None:
        super().__init__(sentence, hint)
        self.retry_after_s = retry_after_s


class Target(Protocol):
    """A place that holds complete objects as plain dictionaries. Calls may block; one thread uses a target."""

    def read(self, namespace: str, name: str) -> dict[str, object] | None:
        """The object as the target has it now; None only when it surely has none.

        Raises ReadBackError for everything else: "could not be read" is not "is not there".
        """

    def write(self, obj: dict[str, object]) -> None:
        """Replace the object by this one, or create it; returns when the target has it.

        Raises PublishError when it has not, or when that is not known; ObjectChanged when somebody else changed the
        object since our last read or write of it.
        """

    def delete(self, namespace: str, name: str) -> None:
        """Remove the object; returns when the target surely has none, also when there was none.

        Raises as `write` does: an object that somebody else changed since our last read or write of it is seen first.
        """

    def edited(self, namespace: str, name: str) -> dict[str, object] | None:
        """The object, if somebody else changed it since our last read or write; None when not, or not known now."""

    def edit_period_s(self) -> float | None:
        """How often `edited` is worth asking although nobody said that something changed. None = not at all."""

    def describe(self) -> str:
        """Where this is, for people: one phrase for logs and Events."""


def identity(obj: dict[str, object]) -> tuple[str, str]:
    """Namespace and name of an object. Raises ValueError when it lacks one of them."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        namespace, name = metadata.get("namespace"), metadata.get("name")
        if isinstance(namespace, str) and isinstance(name, str) and namespace and name:
            return namespace, name
    raise ValueError("the object has no namespace or no name")
