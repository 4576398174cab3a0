"""Pauses that grow in steps while something fails again and again. Pure.

For requests to the API server, where a fleet must not come back in one moment: nodeagent.cluster.backoff.
"""

from collections.abc import Sequence
from typing import TypeVar

_Seconds = TypeVar("_Seconds", int, float)


def backoff_s(pauses_s: Sequence[_Seconds], failures: int) -> _Seconds:
    """The pause after the n-th failure in a row (n >= 1); the last one stays."""
    return pauses_s[min(failures, len(pauses_s)) - 1]
