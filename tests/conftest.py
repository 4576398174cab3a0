"""What all tests share: property tests without a deadline, since a busy machine is no fault; a mock node; an API."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from kit.fake_api import FakeApi, fake_api

from nodeagent.mock.client import MockControl
from nodeagent.mock.launch import MockServer

settings.register_profile("nodeagent", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("nodeagent")


@pytest.fixture
def mock_node() -> str:
    """The node that `server` is: eight A2 chips. Files of tests that need another one say so here."""
    return "a2"


@pytest.fixture
def server(mock_node: str) -> Iterator[MockServer]:
    """A mock node; files of tests that share one have a fixture of their own."""
    with MockServer.start(mock_node) as server:
        yield server


@pytest.fixture
def control(server: MockServer) -> Iterator[MockControl]:
    """The hand on the hardware of `server`."""
    with server.control() as control:
        yield control


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A pretended API server, empty; files of tests that need objects in it have a fixture of their own."""
    with fake_api() as running:
        yield running
