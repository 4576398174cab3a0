"""`make image` chooses a builder that works and says what went wrong. The builders are shell scripts here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodeagent import __version__

BUILD = Path(__file__).parent.parent.parent / "tools" / "image" / "build.py"
WORKS = """#!/bin/sh
echo "$0 $*" >> {calls}
case "$1" in
info) exit {info} ;;
build) exit {build} ;;
run) case "$*" in *nodeagent*) echo "2000000 /" ;; *) echo "1000000 /" ;; esac ;;
esac
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder for programs, beside it the list of their calls."""
    (tmp_path / "bin").mkdir()
    return tmp_path


def program(place: Path, name: str, *, info: int = 0, build: int = 0) -> None:
    """A builder that answers with these exit codes."""
    path = place / "bin" / name
    path.write_text(WORKS.format(calls=place / "calls", info=info, build=build))
    path.chmod(0o755)


def image(place: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the script with nothing but these builders and git on PATH."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    return subprocess.run(
        [sys.executable, str(BUILD), *words],
        env={**kept, "PATH": f"{place / 'bin'}", **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def calls(place: Path) -> list[str]:
    """What was called so far."""
    return (place / "calls").read_text().splitlines()


def test_the_first_builder_that_works_is_taken(place: Path) -> None:
    program(place, "docker", info=1)  # installed, and its daemon does not run
    program(place, "podman")
    program(place, "buildah")
    done = image(place, "--archive", str(place / "x.tar"))
    assert done.returncode == 0, done.stderr
    build = next(line for line in calls(place) if " build " in line)
    assert build.startswith(f"{place}/bin/podman build --tag docker.io/library/nodeagent:{__version__} ")
    assert "BASE=docker.io/library/debian:bookworm-slim" in build
    assert "--secret" not in build
    assert any(f"save --quiet --format oci-archive --output {place}/x.tar" in line for line in calls(place))
    assert done.stdout == (
        f"docker.io/library/nodeagent:{__version__}: 1024 MB unpacked above docker.io/library/debian:bookworm-slim, "
        "2048 MB in all\n"
    )


def test_what_pip_uses_here_is_used_in_the_build(place: Path) -> None:
    program(place, "docker")
    done = image(
        place, "--tag", "registry.example.com/a/b:1", PIP_CERT="/x/ca.crt", PIP_INDEX_URL="https://example.com"
    )
    assert done.returncode == 0, done.stderr
    build = next(line for line in calls(place) if " build " in line)
    assert "--tag registry.example.com/a/b:1 --secret id=ca,src=/x/ca.crt" in build
    assert "--build-arg PIP_INDEX_URL=https://example.com" in build


def test_without_a_builder_there_is_one_sentence(place: Path) -> None:
    program(place, "docker", info=1)
    done = image(place)
    assert done.returncode == 1
    assert done.stderr.startswith("image: no container builder works here")
    assert done.stderr.count("\n") == 1


def test_a_build_that_fails_is_a_failure(place: Path) -> None:
    program(place, "buildah", build=3)
    done = image(place, "--with", "buildah")
    assert (done.returncode, done.stdout) == (1, "")
    assert "buildah could not build it" in done.stderr
