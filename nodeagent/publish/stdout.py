"""Print objects instead of publishing them."""

from typing import TextIO

from nodeagent.core.errors import PublishError
from nodeagent.publish.manifest import to_yaml


class StdoutTarget:
    """Writes each object as one YAML document to a text stream and remembers none."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def read(self, namespace: str, name: str) -> dict[str, object] | None:
        """A stream holds nothing that could be read back: None."""
        return None

    def write(self, obj: dict[str, object]) -> None:
        """Print the object. Raises PublishError when the stream does not take it."""
        self._print(to_yaml(obj))

    def delete(self, namespace: str, name: str) -> None:
        """Print an empty document with a comment. Raises PublishError as `write` does."""
        self._print(f"# {namespace}/{name} is deleted\n")

    def edited(self, namespace: str, name: str) -> dict[str, object] | None:
        """A stream is not edited."""
        return None

    def edit_period_s(self) -> float | None:
        """Never."""
        return None

    def describe(self) -> str:
        """`standard output`."""
        return "standard output"

    def _print(self, text: str) -> None:
        try:
            self._stream.write(f"---\n{text}")
            self._stream.flush()
        except (OSError, ValueError) as error:  # ValueError: the stream was closed
            raise PublishError(f"standard output does not take the object: {error}") from error
