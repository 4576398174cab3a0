#!/usr/bin/env python3
"""Build the container image with docker, podman or buildah, and print how large it is.

Usage: build.py [--with docker|podman|buildah] [--base IMAGE] [--tag NAME:TAG] [--archive FILE] [--source URL]

Without --with, the first of the three that works here is taken. --archive also writes the image to a file that
`ctr -n k8s.io images import` and `docker load` read. --source is for a label. PIP_CERT and PIP_INDEX_URL, if set, are
used in the build as pip uses them here; the certificates do not get into the image.
Exit codes: 0 fine, 1 no image, and why.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DEFAULT_BASE = "docker.io/library/debian:bookworm-slim"
BUILDERS = ("docker", "podman", "buildah")
_MB = 1000


class NoImage(Exception):
    """One sentence that says why there is no image."""


def version() -> str:
    """The version of this checkout."""
    found = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())
    assert found is not None
    return found[1]


def full_name(tag: str) -> str:
    """The name under which Kubernetes looks for a tag: without a registry, that is Docker's."""
    first, slash, _ = tag.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return tag
    return f"docker.io/{tag}" if slash else f"docker.io/library/{tag}"


def revision() -> str:
    """The commit of this checkout, with `-dirty` behind it when files were changed; `unknown` outside of git."""
    commit = _git("rev-parse", "HEAD")
    return f"{commit}{'-dirty' if _git('status', '--porcelain') else ''}" if commit else "unknown"


def choose(wanted: str | None) -> str:
    """A builder that works here. Raises NoImage."""
    for name in [wanted] if wanted else BUILDERS:
        if shutil.which(name) and _quiet(name, "info"):
            return name
    raise NoImage(
        f"{wanted} is not installed or does not run"
        if wanted
        else "no container builder works here: install docker, podman or buildah, and start docker's daemon"
    )


def build_words(builder: str, base: str, name: str, source: str) -> list[str]:
    """The command that builds the image."""
    arguments = {"BASE": base, "VERSION": version(), "REVISION": revision(), "SOURCE": source}
    words = [builder, "build", "--tag", name]
    if builder != "docker":
        words += ["--layers"]  # docker keeps them anyway
    if base.startswith("localhost/"):
        words += [] if builder == "docker" else ["--pull=never"]
    if os.environ.get("PIP_INDEX_URL"):
        arguments["PIP_INDEX_URL"] = os.environ["PIP_INDEX_URL"]
    if os.environ.get("PIP_CERT"):
        words += ["--secret", f"id=ca,src={os.environ['PIP_CERT']}"]
    for key, value in arguments.items():
        words += ["--build-arg", f"{key}={value}"]
    return [*words, str(ROOT)]


def unpacked_kb(builder: str, image: str) -> int:
    """What the files of an image take on a disk, in units of 1,000 bytes, as `du` inside of it says."""
    du = ["du", "-skx", "/"]
    if builder == "buildah":
        container = f"size-{uuid.uuid4().hex[:8]}"
        _run("buildah", "from", "--pull=never", "--name", container, image)
        try:
            answer = _run("buildah", "run", container, "--", *du)
        finally:
            _run("buildah", "rm", container)
    else:
        answer = _run(builder, "run", "--rm", "--network=none", "--entrypoint", du[0], image, *du[1:])
    return int(answer.split()[0]) * 1024 // 1000


def write_archive(builder: str, name: str, file: Path) -> None:
    """Write the image to a file; what is there is replaced."""
    file.unlink(missing_ok=True)
    words: dict[str, Callable[[], list[str]]] = {
        "docker": lambda: ["save", "--output", str(file), name],
        "podman": lambda: ["save", "--quiet", "--format", "oci-archive", "--output", str(file), name],
        "buildah": lambda: ["push", "--quiet", name, f"oci-archive:{file}:{name}"],
    }
    _run(builder, *words[builder]())


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--with", dest="builder", choices=BUILDERS)
    parser.add_argument("--base", default=DEFAULT_BASE, metavar="IMAGE")
    parser.add_argument("--tag", default=f"nodeagent:{version()}", metavar="NAME:TAG")
    parser.add_argument("--archive", type=Path, metavar="FILE")
    parser.add_argument("--source", default="", metavar="URL")
    arguments = parser.parse_args()
    name = full_name(arguments.tag)
    try:
        builder = choose(arguments.builder)
        environment = os.environ | {"DOCKER_BUILDKIT": "1"}
        words = build_words(builder, arguments.base, name, arguments.source)
        if subprocess.run(words, stdout=sys.stderr, env=environment, check=False).returncode != 0:
            raise NoImage(f"{builder} could not build it, and said why")
        if arguments.archive is not None:
            write_archive(builder, name, arguments.archive.resolve())
    except NoImage as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    try:
        total, base = unpacked_kb(builder, name), unpacked_kb(builder, arguments.base)
    except NoImage as error:
        print(f"{name} is built; how large it is cannot be told: {error}", file=sys.stderr)
    else:
        print(f"{name}: {(total - base) / _MB:.0f} MB unpacked above {arguments.base}, {total / _MB:.0f} MB in all")
    return 0


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoImage(f"`{' '.join(words)}` failed: {done.stderr.strip()}")
    return done.stdout


def _quiet(*words: str) -> bool:
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
