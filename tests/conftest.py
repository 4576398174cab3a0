"""What all tests share: property tests without a deadline, since a busy machine is no fault, and a mock node."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer

settings.register_profile("nodeagent", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("nodeagent")


@pytest.fixture
def server() -> Iterator[MockServer]:
    """A mock node of eight A2 chips; files of tests that share one node have a fixture of their own."""
    with MockServer.start("a2") as server:
        yield server


@pytest.fixture
def control(server: MockServer) -> Iterator[MockControl]:
    """The hand on the hardware of `server`."""
    with server.control() as control:
        yield control
