"""Images for a node of the tests, made without a registry and kept for the next run.

They lie beside the control plane's binaries, in the ignored folder tests/cluster/.bin/node/: a Debian made by
debootstrap, our image built on it by the Dockerfile of this checkout, and the pause image that every pod needs.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kit.cluster import BUILT
from kit.daemon import compile_c

ROOT = Path(__file__).parent.parent.parent
CACHE = BUILT / "node"
BASE = "localhost/base:bookworm"
AGENT = "docker.io/library/nodeagent:tests"
PAUSE = "localhost/pause:1"
TOOLS = ("containerd", "runc", "buildah", "debootstrap")
_SIZE = CACHE / "nodeagent.size"
_STEP_S = 900
_MOST_LAYERS = 80
"""About six builds, 1.5 GB. Kept, because a build after a change of our code alone then takes a third of the time."""
_PAUSE = """
#include <signal.h>
#include <unistd.h>
static void leave(int number) { (void)number; _exit(0); }
int main(void) { signal(SIGTERM, leave); signal(SIGINT, leave); for (;;) pause(); }
"""


def missing_tools() -> list[str]:
    """What must be installed before a node can be started."""
    return [name for name in TOOLS if shutil.which(name) is None]


def archives() -> list[Path]:
    """The images as files for `ctr images import`; made when they are missing or their sources changed."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock, _storage() as environment:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return [_pause(environment), _agent(environment)]


def megabytes_above_base() -> int:
    """How much larger than its base our image is, unpacked, as the build said."""
    found = re.search(r": (\d+) MB unpacked above", _SIZE.read_text())
    assert found is not None, _SIZE.read_text()
    return int(found[1])


def _agent(environment: dict[str, str]) -> Path:
    archive, stamp, wanted = CACHE / "nodeagent.tar", CACHE / "nodeagent.built-from", _sources()
    if archive.exists() and stamp.exists() and stamp.read_text() == wanted:
        return archive
    if not _succeeds(["buildah", "inspect", "--type=image", BASE], environment):
        _base(environment)
    if len(_run(["buildah", "images", "--all", "--quiet"], environment).split()) > _MOST_LAYERS:
        _run(["buildah", "rmi", "--prune", "--force"], environment)
    with _told("building the image"):
        build = [sys.executable, ROOT / "tools" / "image" / "build.py", "--with=buildah", f"--base={BASE}"]
        told = _run([*build, f"--tag={AGENT}", f"--archive={archive}"], environment)
        _SIZE.write_text(told)
    stamp.write_text(wanted)
    return archive


def _base(environment: dict[str, str]) -> None:
    """A minimal Debian from the mirror that this machine uses, without what apt keeps for later."""
    targets = _run(["apt-get", "indextargets", "--format", "$(SITE)|$(RELEASE)"], environment).splitlines()
    mirrors = [line.partition("|")[0] for line in targets if line.endswith("|bookworm")]
    assert mirrors, "apt knows no mirror of Debian bookworm; run apt-get update"
    with tempfile.TemporaryDirectory(prefix="nodeagent-base-", dir=CACHE) as folder, _told("making a Debian"):
        tree = Path(folder, "tree")
        _run(["debootstrap", "--variant=minbase", "bookworm", tree, mirrors[0]], environment)
        for part in ("var/cache/apt", "var/lib/apt/lists", "var/log"):
            shutil.rmtree(tree / part)
            (tree / part).mkdir()
        _commit({"/": tree}, [], BASE, environment)


def _pause(environment: dict[str, str]) -> Path:
    archive = CACHE / "pause.tar"
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            source, program = Path(folder, "pause.c"), Path(folder, "pause")
            source.write_text(_PAUSE)
            compile_c("-static", "-O2", source, "-o", program)
            _commit({"/pause": program}, ["--entrypoint", '["/pause"]'], PAUSE, environment)
        _run(["buildah", "push", "--quiet", PAUSE, f"oci-archive:{archive}:{PAUSE}"], environment)
    return archive


def _commit(files: dict[str, Path], settings: list[str], name: str, environment: dict[str, str]) -> None:
    container = _run(["buildah", "from", "scratch"], environment).strip()
    for to, file in files.items():
        _run(["buildah", "add", "--quiet", container, file, to], environment)
    if settings:
        _run(["buildah", "config", *settings, container], environment)
    _run(["buildah", "commit", "--quiet", "--rm", container, name], environment)


@contextlib.contextmanager
def _storage() -> Iterator[dict[str, str]]:
    """An environment in which buildah keeps its images in our cache, not in those of this machine."""
    graph, settings = CACHE / "storage", CACHE / "storage.conf"
    settings.write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{graph}"\nrunroot = "{CACHE / "run"}"\n', encoding="utf-8"
    )
    chosen = {"CONTAINERS_STORAGE_CONF": str(settings), "BUILDAH_ISOLATION": "chroot"}
    try:
        yield {key: value for key, value in os.environ.items() if key != "STORAGE_DRIVER"} | chosen
    finally:
        while os.path.ismount(graph / "overlay"):  # buildah leaves it
            subprocess.run(["umount", str(graph / "overlay")], check=True)


def _sources() -> str:
    """A text that changes with everything that gets into the image."""
    digest = hashlib.sha256()
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    named = ["Dockerfile", ".dockerignore", "tools/image/build.py", *(x[1:] for x in kept if x.startswith("!"))]
    files = []
    for name in named:
        inside = (ROOT / name).rglob("*") if (ROOT / name).is_dir() else [ROOT / name]
        files += [path for path in inside if path.is_file() and "__pycache__" not in path.parts]
    for path in sorted(files):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    begin = time.monotonic()
    yield
    print(f"node: {what} took {time.monotonic() - begin:.0f} s", file=sys.__stderr__, flush=True)


def _run(words: list[object], environment: dict[str, str]) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_STEP_S,
    )
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def _succeeds(words: list[str], environment: dict[str, str]) -> bool:
    return subprocess.run(words, env=environment, capture_output=True, check=False).returncode == 0
