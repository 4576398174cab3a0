"""What a place to publish to must be able to do."""

from typing import Protocol


class Target(Protocol):
    """A place that holds complete objects as plain dictionaries. Calls may block; one thread uses a target."""

    def read(self, namespace: str, name: str) -> dict[str, object] | None:
        """The object as the target has it now; None only when it surely has none.

        Raises ReadBackError for everything else: "could not be read" is not "is not there".
        """

    def write(self, obj: dict[str, object]) -> None:
        """Replace the object by this one, or create it; returns when the target has it.

        Raises PublishError when it has not, or when that is not known.
        """

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
