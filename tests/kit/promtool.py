"""promtool of Prometheus, which judges metrics and rules as Prometheus itself would."""

import os
import shutil

import pytest


def promtool() -> str:
    """Its path. Without it the test is skipped, except in CI, which installs it."""
    path = shutil.which("promtool")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("promtool is not installed")
        pytest.skip("promtool is not installed (Debian: package prometheus)")
    return path
