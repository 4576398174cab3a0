"""What the folders share whose tests need real servers from outside: their mark, and the way to loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest


def mark_below(folder: Path, items: list[pytest.Item], *marks: pytest.MarkDecorator) -> None:
    """Mark the tests of a folder, before pytest looks at marks: none of them may slip into `make test`."""
    for item in items:
        if item.path.is_relative_to(folder):
            for mark in marks:
                item.add_marker(mark)


@pytest.fixture(scope="session", autouse=True)
def no_http_proxy() -> Iterator[None]:
    """Loopback is reached directly, whatever this machine's settings for HTTP proxies are."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("NO_PROXY", "no_proxy"):
            patch.setenv(name, "127.0.0.1")
        yield
