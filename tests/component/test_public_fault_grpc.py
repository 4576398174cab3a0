"""Telling public faults by gRPC: real calls to a server in this process whose types are taken apart by hand."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kit.clusterd_server import Certificates, Service, certificates, clusterd_server
from kit.daemon import wait_until
from kit.fake_clusterd import FakeClusterd
from kit.public_fault import CHIPS, Home

from nodeagent.core.clock import SystemClock
from nodeagent.core.errors import PublicFaultError, SettingsError
from nodeagent.core.settings import PublicFaultSettings
from nodeagent.core.storage import StorageClient, StorageFault, StorageVerdict
from nodeagent.core.telemetry import EventReason
from nodeagent.daemon.metrics import Registry
from nodeagent.policy.public_fault import Due, Telling
from nodeagent.policy.public_fault_track import Assertion
from nodeagent.publish.courier import BusyError, RefusedError
from nodeagent.publish.courier_grpc import GrpcCourier
from nodeagent.publish.public_fault import PublicFaultWriter
from nodeagent.publish.public_fault_proto import wire_types
from nodeagent.render.public_fault import message_of

SETTINGS = PublicFaultSettings(delivery="grpc", call_deadline_s=5.0)
NAME = "clusterd-grpc-svc.mindx-dl.svc.cluster.local"
SAID = (
    Telling(StorageFault.DPC_PROCESS, Assertion.OCCUR, 1767225600000, CHIPS),
    Telling(StorageFault.DPC_MEMORY, Assertion.RECOVER, 1767225500000, (0, 31)),
)
MESSAGE = message_of(Due(StorageClient.DPC, SAID, False), "node-1", "message-1", 1767225600001)


@pytest.fixture
def service() -> Iterator[Service]:
    with clusterd_server(FakeClusterd(now_ms=1767225600000)) as running:
        yield running


def courier(service: Service, **settings: object) -> GrpcCourier:
    return GrpcCourier(replace(SETTINGS, address=service.address, **settings))  # type: ignore[arg-type]


def test_every_field_arrives_under_its_number(service: Service) -> None:
    courier(service).deliver(MESSAGE)
    assert service.calls == ["/PubFault/SendPublicFault"]
    assert service.clusterd.received == [dict(MESSAGE.document)]
    assert service.clusterd.faults_of("node-1")["110001020"].devices == CHIPS


def test_answers_by_code(service: Service) -> None:
    sender = courier(service)
    service.clusterd.answers = [(410, "limiter says no"), (409, "no such code"), (500, "")]
    with pytest.raises(BusyError, match="answered 410: 'limiter says no'"):
        sender.deliver(MESSAGE)
    with pytest.raises(RefusedError, match="answered 409: 'no such code'"):
        sender.deliver(MESSAGE)
    with pytest.raises(PublicFaultError, match="answered 500"):
        sender.deliver(MESSAGE)
    service.abort = "qps exceeded"
    with pytest.raises(BusyError, match="qps exceeded"):
        sender.deliver(MESSAGE)
    service.abort = "something else"
    with pytest.raises(PublicFaultError, match="RESOURCE_EXHAUSTED 'something else'") as caught:
        sender.deliver(MESSAGE)
    assert type(caught.value) is PublicFaultError
    service.abort, service.raw = "", b"\xff\xff"
    with pytest.raises(PublicFaultError, match="another form"):
        sender.deliver(MESSAGE)
    service.raw = b""  # zero and no text: proto3 leaves both out
    sender.deliver(MESSAGE)


def test_nobody_there_and_nobody_who_answers(service: Service) -> None:
    with pytest.raises(PublicFaultError, match="UNAVAILABLE"):
        GrpcCourier(replace(SETTINGS, address="127.0.0.1:1")).deliver(MESSAGE)
    service.hold = threading.Event()
    with pytest.raises(PublicFaultError, match="DEADLINE_EXCEEDED"):
        courier(service, call_deadline_s=0.5).deliver(MESSAGE)


def test_a_proxy_of_the_environment_is_not_used(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    courier(service).deliver(MESSAGE)
    assert len(service.clusterd.taken) == 1


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("tls"), NAME)


def test_tls(files: Certificates, tmp_path: Path) -> None:
    with clusterd_server(FakeClusterd(now_ms=1), files) as service:
        trusting = {"tls_ca": str(files.ca), "tls_server_name": NAME}
        sender = courier(service, **trusting)
        assert sender.describe().endswith(" (TLS)")
        sender.deliver(MESSAGE)
        assert len(service.clusterd.taken) == 1
        other = certificates(tmp_path, NAME)
        for settings in (
            trusting | {"tls_server_name": "another.name"},
            trusting | {"tls_ca": str(other.ca)},
            {"tls_ca": ""},
        ):
            with pytest.raises(PublicFaultError, match="UNAVAILABLE"):
                courier(service, **settings).deliver(MESSAGE)
        with pytest.raises(PublicFaultError, match="cannot be read: No such file"):
            courier(service, **trusting | {"tls_ca": str(tmp_path / "none")}).deliver(MESSAGE)
    assert len(service.clusterd.received) == 1


def test_tls_with_a_certificate_of_our_own(files: Certificates) -> None:
    with clusterd_server(FakeClusterd(now_ms=1), files, want_client=True) as service:
        trusting = {"tls_ca": str(files.ca), "tls_server_name": NAME}
        with pytest.raises(PublicFaultError, match="UNAVAILABLE"):
            courier(service, **trusting).deliver(MESSAGE)
        courier(service, **trusting, tls_certificate=str(files.certificate), tls_key=str(files.key)).deliver(MESSAGE)
        assert len(service.clusterd.taken) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "clusterd"},
        {"address": ":8899"},
        {"address": "clusterd:http"},
        {"tls_certificate": "a", "tls_ca": "b"},
        {"tls_key": "a", "tls_ca": "b"},
        {"tls_certificate": "a", "tls_key": "b"},
        {"tls_server_name": "a"},
    ],
)
def test_settings_that_cannot_work(wrong: dict[str, str]) -> None:
    with pytest.raises(SettingsError):
        GrpcCourier(replace(SETTINGS, **wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", ["grpc", "google.protobuf", "google"])
def test_a_missing_package_is_a_clear_error(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    found = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> object:
        if name == missing:
            return None
        if name.startswith(f"{missing}."):
            raise ModuleNotFoundError(name)
        return found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    with pytest.raises(SettingsError) as caught:
        GrpcCourier(SETTINGS)
    assert "is not installed" in caught.value.sentence
    assert "nodeagent[grpc]" in caught.value.hint


def test_packages_that_do_not_load_are_a_failed_call(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    sender = courier(service)
    monkeypatch.setitem(sys.modules, "grpc", None)  # type: ignore[arg-type]
    with pytest.raises(PublicFaultError, match="cannot be loaded"):
        sender.deliver(MESSAGE)


def test_nothing_heavy_is_loaded_before_the_first_message() -> None:
    program = (
        "import sys; from nodeagent.core.settings import PublicFaultSettings;"
        "from nodeagent.publish.courier_grpc import GrpcCourier; GrpcCourier(PublicFaultSettings());"
        "sys.exit(any(name in sys.modules for name in ('grpc', 'google.protobuf.descriptor_pb2')))"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=30)


def test_t21_a_writer_in_its_thread_delivers_after_refusals(service: Service, tmp_path: Path) -> None:
    service.clusterd.answers = [(410, "rate limited")] * 5
    home = Home(None)  # for its ears
    metrics = Registry()
    writer = PublicFaultWriter(
        courier(service), "node-1", tmp_path, "clusterd", 120, SystemClock(), home.ears, metrics, lambda: 0.01
    )
    thread = threading.Thread(target=writer.run)
    thread.start()
    try:
        writer.chips(CHIPS)
        present = {StorageFault.DPC_PROCESS: True, StorageFault.DPC_MEMORY: None}
        writer.submit(StorageVerdict(StorageClient.DPC, present, SystemClock().now()))
        wait_until(lambda: service.clusterd.taken, "the message is taken")
        wait_until(lambda: len(home.ears.events) == 2, "both Events")
    finally:
        writer.stop()
        thread.join(10)
    assert not thread.is_alive()
    assert len(service.clusterd.received) == 6
    assert home.ears.reasons == [EventReason.PUBLIC_FAULT_LATE, EventReason.PUBLIC_FAULT_DELIVERED]
    assert metrics.value("public_fault_messages_total", resource="dpcStorage", result="ok") == 1


def test_a_clusterd_that_ends_and_comes_back_is_reached_again(tmp_path: Path) -> None:
    clusterd = FakeClusterd(now_ms=1)
    with clusterd_server(clusterd) as service:
        sender = courier(service)
        sender.deliver(MESSAGE)
        address = service.address
    with pytest.raises(PublicFaultError, match="UNAVAILABLE"):
        sender.deliver(MESSAGE)
    with clusterd_server(clusterd, address=address):
        sender.deliver(MESSAGE)
    assert len(clusterd.taken) == 2


def test_types_are_made_anew_without_clashing() -> None:
    first, second = wire_types(), wire_types()
    assert first.encode(MESSAGE.document) == second.encode(MESSAGE.document)
