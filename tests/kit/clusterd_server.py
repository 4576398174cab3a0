"""The gRPC service of a pretended ClusterD. Messages are taken apart by hand, field number by field number (13.1)."""

import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.fake_clusterd import FakeClusterd

REQUEST = {1: "id", 2: "timestamp", 3: "version", 4: "resource", 5: "faults"}
FAULT = {
    1: "faultId",
    2: "faultType",
    3: "faultCode",
    4: "faultTime",
    5: "assertion",
    6: "faultLocation",
    7: "influence",
    8: "description",
}
INFLUENCE = {1: "nodeName", 2: "nodeSN", 3: "deviceIds"}


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and raw values of a message: whole numbers, or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
        elif tag & 7 == 2:
            size, at = varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {tag & 7}")


def request_of(data: bytes) -> dict[str, Any]:
    """The message as ClusterD's JSON would show it."""
    message: dict[str, Any] = {"id": "", "timestamp": 0, "version": "", "resource": "", "faults": []}
    for number, value in fields(data):
        if number == 5:
            message["faults"].append(_fault(value))
        else:
            message[REQUEST[number]] = value if number == 2 else value.decode()
    return message


def _fault(data: bytes) -> dict[str, Any]:
    fault: dict[str, Any] = {name: "" for name in FAULT.values()}
    fault |= {"faultTime": 0, "faultLocation": {}, "influence": []}
    for number, value in fields(data):
        if number == 6:
            entry = {key: text.decode() for key, text in fields(value)}
            fault["faultLocation"][entry.get(1, "")] = entry.get(2, "")
        elif number == 7:
            fault["influence"].append(_influence(value))
        else:
            fault[FAULT[number]] = value if number == 4 else value.decode()
    return fault


def _influence(data: bytes) -> dict[str, Any]:
    influence: dict[str, Any] = {"nodeName": "", "nodeSN": "", "deviceIds": []}
    for number, value in fields(data):
        if number != 3:
            influence[INFLUENCE[number]] = value.decode()
        elif isinstance(value, int):
            influence["deviceIds"].append(value)
        else:  # packed
            at = 0
            while at < len(value):
                each, at = varint(value, at)
                influence["deviceIds"].append(each)
    return influence


def status_bytes(code: int, info: str) -> bytes:
    """A RespStatus; code below 16384."""
    head = b"" if code == 0 else bytes([0x08, code & 0x7F | 0x80, code >> 7] if code > 127 else [0x08, code])
    text = info.encode()
    return head + bytes([0x12, len(text)]) + text


@dataclass
class Service:
    """A running server. abort: gRPC error text for the next calls. raw: answer of these bytes. hold: answers wait."""

    clusterd: FakeClusterd
    address: str = ""
    abort: str = ""
    raw: bytes | None = None
    hold: threading.Event | None = None
    calls: list[str] = field(default_factory=list)


@contextmanager
def clusterd_server(
    clusterd: FakeClusterd, tls: "Certificates | None" = None, want_client: bool = False
) -> Iterator[Service]:
    """Serve on 127.0.0.1 until the context ends."""
    import grpc

    service = Service(clusterd)

    class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: Any) -> Any:
            service.calls.append(details.method)
            if details.method == "/PubFault/SendPublicFault":
                return grpc.unary_unary_rpc_method_handler(answer)
            return None

    def answer(data: bytes, context: Any) -> bytes:
        if service.hold is not None:
            service.hold.wait(30)
        if service.abort:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, service.abort)
        if service.raw is not None:
            return service.raw
        return status_bytes(*clusterd.send(request_of(data)))

    server = grpc.server(ThreadPoolExecutor(4), handlers=[Handler()])
    if tls is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        pair = [(tls.key.read_bytes(), tls.certificate.read_bytes())]
        root = tls.ca.read_bytes() if want_client else None
        credentials = grpc.ssl_server_credentials(pair, root, want_client)
        port = server.add_secure_port("127.0.0.1:0", credentials)
    service.address = f"127.0.0.1:{port}"
    server.start()
    try:
        yield service
    finally:
        if service.hold is not None:
            service.hold.set()
        server.stop(None).wait(10)


@dataclass(frozen=True)
class Certificates:
    """A CA, and a certificate of `name` that it signed, for both sides."""

    ca: Path
    key: Path
    certificate: Path


def certificates(folder: Path, name: str) -> Certificates:
    """Make them with openssl."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {kind: folder / kind for kind in ("ca.key", "ca.crt", "key", "csr", "crt", "ext")}
    files["ext"].write_text(f"subjectAltName=DNS:{name}\n")
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    make_ca = [
        "req",
        "-x509",
        *ec,
        "-keyout",
        files["ca.key"],
        "-out",
        files["ca.crt"],
        "-subj",
        "/CN=test-ca",
        "-days",
        "2",
    ]
    ask = ["req", *ec, "-keyout", files["key"], "-out", files["csr"], "-subj", f"/CN={name}"]
    sign = ["x509", "-req", "-in", files["csr"], "-CA", files["ca.crt"], "-CAkey", files["ca.key"], "-CAcreateserial"]
    sign += ["-out", files["crt"], "-days", "2", "-extfile", files["ext"]]
    for command in (make_ca, ask, sign):
        subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True, timeout=30)
    return Certificates(files["ca.crt"], files["key"], files["crt"])
