"""What goes into the image: every dependency is pinned with hashes, at a version that pyproject.toml allows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent.parent
ENTRY = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?: ; (?P<marker>[^\\]+))?(?P<hashes>(?: \\\n    --hash=\S+)+)$", re.M
)
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


def locked(file: str) -> list[tuple[str, Version, str, int]]:
    """Name, version, marker and number of hashes of every entry."""
    text = (ROOT / file).read_text()
    found = [
        (canonicalize_name(m["name"]), Version(m["version"]), (m["marker"] or "").strip(), m["hashes"].count("--hash="))
        for m in ENTRY.finditer(text)
    ]
    assert len(found) == len(re.findall(r"^[\w.-]+==", text, re.M)), "an entry without a hash"
    return found


def wanted(group: str) -> list[Requirement]:
    """The requirements of pyproject.toml."""
    command = [sys.executable, str(ROOT / "tools" / "requirements.py"), group]
    return [Requirement(line) for line in subprocess.check_output(command, text=True).splitlines()]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("file", "group"),
    [("requirements.lock", "run"), ("requirements.lock", "lan"), ("requirements-build.lock", "build")],
)
def test_the_lock_satisfies_pyproject(file: str, group: str, python: str) -> None:
    entries = locked(file)
    for requirement in wanted(group):
        versions = [
            version
            for name, version, marker, _ in entries
            if name == canonicalize_name(requirement.name) and applies(marker, python)
        ]
        assert len(versions) == 1, f"{requirement} on Python {python}: make lock"
        assert requirement.specifier.contains(versions[0]), f"{requirement} is locked at {versions[0]}: make lock"


def test_both_locks_agree() -> None:
    """cffi generates code in the build and runs it in the image."""
    run = {(name, marker): version for name, version, marker, _ in locked("requirements.lock")}
    build = {(name, marker): version for name, version, marker, _ in locked("requirements-build.lock")}
    both = run.keys() & build.keys()
    assert ("cffi", "") in both
    assert {key: run[key] for key in both} == {key: build[key] for key in both}


def test_compiled_packages_have_wheels_for_more_than_one_processor() -> None:
    """One hash would be that of the machine which made the lock."""
    hashes = {name: count for name, _, _, count in locked("requirements.lock")}
    for name in ("cffi", "pyyaml", "pydantic-core", "cryptography"):
        assert hashes[name] > 10, name


def applies(marker: str, python: str) -> bool:
    """A marker holds on this Python."""
    return not marker or Requirement(f"x ; {marker}").marker.evaluate(  # type: ignore[union-attr]
        {"python_version": python, "python_full_version": f"{python}.0", "implementation_name": "cpython"}
    )
