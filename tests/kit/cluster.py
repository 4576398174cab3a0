"""A real control plane on this machine for tests: etcd and kube-apiserver with RBAC, on request a controller manager.

Nothing is pretended but the node: objects, admission, RBAC, tokens and conflicts are those of Kubernetes. The
binaries come from tests/cluster/build.py (`make test-cluster`). Flags: docs/testing.md.
"""

import contextlib
import http.client
import json
import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.daemon import LIMIT_S, wait_until
from kit.server_process import ServerProcess, free_ports
from kit.service_tokens import ISSUER, SigningKey

BUILT = Path(__file__).parent.parent / "cluster" / ".bin"
ADMIN_TOKEN = "admin-of-the-tests"


def program(name: str) -> Path:
    """Path of a control plane's program. AssertionError that says what to do when it is not there."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS") or BUILT)
    if name == "kubectl" and not (folder / name).exists():
        folder = Path(shutil.which(name) or folder / name).parent  # envtest's folders need not have one
    assert (folder / name).exists(), f"{folder} has no {name}: make test-cluster builds it (see docs/testing.md)"
    return folder / name


def foreign_without(name: str) -> bool:
    """The binaries come from elsewhere and lack one that envtest does not ship; our own build has them all."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    return bool(folder) and not Path(str(folder), name).exists()


@dataclass(frozen=True)
class Answer:
    """An answer of the API server. document: the decoded body, or its text where it is not JSON."""

    status: int
    document: Any


@dataclass
class Cluster:
    """A control plane with its state under `folder`. Use it as a context manager, or `start` and `close` it.

    controllers: run a controller manager too; without it no namespace gets its `default` service account, nothing is
    garbage-collected, and no pod is made for a DaemonSet. scheduler: run a scheduler too; without it no pod gets a
    node. daemon_kubeconfig: of daemons, None = all rights. api_flags: further flags of the API server.
    admin_kubeconfig: a file with all rights. ca_file: what clients check the server's certificate with. url: as in a
    kubeconfig.
    """

    folder: Path
    controllers: bool = False
    scheduler: bool = False
    daemon_kubeconfig: Path | None = None
    api_flags: tuple[str, ...] = ()
    api_server: ServerProcess = field(init=False)
    etcd: ServerProcess = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port, etcd_port, peer_port = free_ports(3)
        self.url = f"https://127.0.0.1:{self.port}"
        self.ca_file = self.folder / "certs" / "apiserver.crt"
        self._data = self.folder / "etcd-data"
        self.signing_key = SigningKey.make(self.folder)
        (self.folder / "tokens.csv").write_text(f'{ADMIN_TOKEN},admin,1,"system:masters"\n')
        self.admin_kubeconfig = self.kubeconfig(ADMIN_TOKEN, "admin")
        etcd_url, peer_url = (f"http://127.0.0.1:{port}" for port in (etcd_port, peer_port))
        self.etcd = ServerProcess("etcd", self._etcd_command(etcd_url, peer_url), self.folder, lambda: True)
        self.api_server = ServerProcess("kube-apiserver", self._api_command(etcd_url), self.folder, self.ready)
        self._servers = [self.etcd, self.api_server]
        if self.controllers:
            manager = self._manager_command()
            self._servers.append(ServerProcess("kube-controller-manager", manager, self.folder, lambda: True))
        if self.scheduler:
            scheduler = self._scheduler_command()
            self._servers.append(ServerProcess("kube-scheduler", scheduler, self.folder, lambda: True))

    def __enter__(self) -> "Cluster":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start everything; returns when the API server is ready and `kube-system` exists."""
        try:
            for server in self._servers:
                server.start()
            wait_until(lambda: self.call("GET", "/api/v1/namespaces/kube-system").status == 200, "kube-system exists")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kill everything. The logs stay in `folder`, the objects do not: etcd takes 120 MB at least."""
        for server in reversed(self._servers):
            server.kill()
        shutil.rmtree(self._data, ignore_errors=True)

    def ready(self) -> bool:
        """The API server says that it is ready."""
        try:
            return self.call("GET", "/readyz", limit_s=2.0).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str = ADMIN_TOKEN,
        port: int | None = None,
        limit_s: float = LIMIT_S,
        content_type: str = "application/json",
    ) -> Answer:
        """One request on a connection of its own.

        token: empty = anonymous. port: of a proxy in front. Raises OSError (TimeoutError after `limit_s` without a
        byte) and HTTPException when no answer comes; every status is an answer.
        """
        connection = self._connection(port, limit_s)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), _headers(token, content_type))
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        is_json = response.headers.get_content_type() == "application/json"
        return Answer(response.status, json.loads(text) if is_json else text)

    @contextlib.contextmanager
    def watch(
        self, path: str, *, token: str = ADMIN_TOKEN, port: int | None = None, limit_s: float = LIMIT_S
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Watch events of a collection, from what is there on, until the connection ends. Raises as `call` does."""
        connection = self._connection(port, limit_s)
        try:
            connection.request("GET", f"{path}?watch=true", headers=_headers(token))
            response = connection.getresponse()
            assert response.status == 200, response.read()
            yield (json.loads(line) for line in iter(response.readline, b""))
        finally:
            connection.close()

    def changes(self, path: str, since: str) -> list[dict[str, Any]]:
        """Watch events of a collection after the version `since`, up to now."""
        connection = self._connection(None, LIMIT_S)
        try:
            query = f"watch=true&resourceVersion={since}&timeoutSeconds=1"
            connection.request("GET", f"{path}?{query}", headers=_headers(ADMIN_TOKEN))
            response = connection.getresponse()
            assert response.status == 200, response.read()
            return [json.loads(line) for line in iter(response.readline, b"")]
        finally:
            connection.close()

    def create(self, path: str, kind: str, name: str, **fields: object) -> Any:
        """POST an object to the collection at `path`, as in `/api/v1/namespaces`; what the server made of it."""
        version = path.removeprefix("/apis/").removeprefix("/api/")
        api_version = "/".join(version.split("/")[: 2 if path.startswith("/apis/") else 1])
        body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}
        answer = self.call("POST", path, body)
        assert answer.status == 201, answer
        return answer.document

    def config_map(self, namespace: str, name: str) -> dict[str, Any] | None:
        """A ConfigMap as the server has it; None when there is none."""
        answer = self.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        assert answer.status in (200, 404), answer
        return answer.document if answer.status == 200 else None

    def kubectl(
        self, *words: object, input: str | None = None, kubeconfig: Path | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl with all rights, or with those of another kubeconfig.

        check: a refusal is an AssertionError with kubectl's words; else look at `returncode` and `stderr`.
        """
        done = subprocess.run(
            [str(program("kubectl")), *map(str, words)],
            input=input,
            env=self._environment() | {"KUBECONFIG": str(kubeconfig or self.admin_kubeconfig)},
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        assert not check or done.returncode == 0, f"kubectl {' '.join(map(str, words))}: {done.stderr}"
        return done

    def kubeconfig(self, token: str, name: str, *, url: str | None = None) -> Path:
        """Write `<folder>/<name>.kubeconfig` for the bearer of a token. url: of a proxy in front of the server."""
        path = self.folder / f"{name}.kubeconfig"
        cluster = {"server": url or self.url, "certificate-authority": str(self.ca_file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": "tests", "user": name}}],
            "current-context": name,
        }
        path.write_text(json.dumps(config, indent=1))  # JSON is YAML
        path.chmod(0o600)
        return path

    def service_account(self, namespace: str, name: str) -> dict[str, Any]:
        """The service account, created when there is none."""
        collection = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        answer = self.call("GET", f"{collection}/{name}")
        found = answer.document if answer.status == 200 else self.create(collection, "ServiceAccount", name)
        return dict(found)

    def service_account_token(self, namespace: str, name: str, seconds: int = 3600) -> str:
        """A token from the TokenRequest API, which grants 600 s at least. The account must exist."""
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        answer = self.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", request)
        assert answer.status == 201, answer
        return str(answer.document["status"]["token"])

    def signed_token(self, namespace: str, name: str, expires_in_s: int) -> str:
        """A token for an existing service account with any time to live, signed by us with the server's key.

        The server forgives a minute: a token is refused as expired from `expires_in_s` below -60 on. It also
        remembers for 10 s that a token was good.
        """
        answer = self.call("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}")
        assert answer.status == 200, answer
        return self.signing_key.token(namespace, name, answer.document["metadata"]["uid"], expires_in_s)

    def _connection(self, port: int | None, limit_s: float) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.ca_file))
        return http.client.HTTPSConnection("127.0.0.1", port or self.port, timeout=limit_s, context=context)

    def _environment(self) -> Mapping[str, str]:
        """Ours without what would lead kubectl to another cluster, a proxy or the user's own settings."""
        apart = ("KUBE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(apart)}
        return kept | {"HOME": str(self.folder), "NO_PROXY": "127.0.0.1"}

    def _etcd_command(self, url: str, peer_url: str) -> list[object]:
        return [
            program("etcd"),
            f"--data-dir={self._data}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--unsafe-no-fsync",  # data survives kill -9, as no power is cut here
        ]

    def _api_command(self, etcd_url: str) -> list[object]:
        return [
            program("kube-apiserver"),
            f"--etcd-servers={etcd_url}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",  # else a machine without a default route is refused
            "--endpoint-reconciler-type=none",  # a loopback address must not become an endpoint
            f"--cert-dir={self.ca_file.parent}",  # the server makes its certificate there, and keeps it
            "--authorization-mode=Node,RBAC",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--service-account-key-file={self.signing_key.public_file}",
            f"--service-account-signing-key-file={self.signing_key.file}",
            f"--service-account-issuer={ISSUER}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged=true",
            *self.api_flags,
        ]

    def _scheduler_command(self) -> list[object]:
        return [
            program("kube-scheduler"),
            f"--kubeconfig={self.admin_kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
        ]

    def _manager_command(self) -> list[object]:
        return [
            program("kube-controller-manager"),
            f"--kubeconfig={self.admin_kubeconfig}",
            f"--service-account-private-key-file={self.signing_key.file}",
            f"--root-ca-file={self.ca_file}",
            "--leader-elect=false",
            "--secure-port=0",
        ]


def _headers(token: str, content_type: str = "application/json") -> dict[str, str]:
    headers = {"Accept": "application/json", "Content-Type": content_type}
    return headers | {"Authorization": f"Bearer {token}"} if token else headers
