"""Why the daemon could not start, left where Kubernetes shows it: in the status of the pod."""

import contextlib
import os

VARIABLE = "NODEAGENT_TERMINATION_LOG"
"""Names the container's `terminationMessagePath`, which a container is not told otherwise."""
MAX_BYTES = 4096
"""The kubelet reads no more."""


def leave_last_words(sentence: str) -> None:
    """Write a sentence to the file that the environment names; without one, or where that fails, nothing happens.

    The kubelet has made the file. It is not made here, and no link is followed: the path may be in a folder of all.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return
    with contextlib.suppress(OSError):
        text = sentence.encode(errors="backslashreplace")[:MAX_BYTES].decode(errors="ignore")  # no half characters
        file = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)
