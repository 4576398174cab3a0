"""What is in the image, and what is not."""

from kit.node import RealNode
from kit.node_daemon import DaemonInPod
from kit.node_images import megabytes_above_base


def test_it_is_small(node: RealNode) -> None:
    assert 20 < megabytes_above_base() < 160  # decision 31


def test_nothing_of_the_build_is_in_it(daemon: DaemonInPod) -> None:
    look = "for name in sh nodeagent tini gcc cc pip pip3 meson ninja; do command -v $name; done; true"
    found = daemon.exec("sh", "-c", look).stdout.split()
    assert sorted(path.rpartition("/")[2] for path in found) == ["nodeagent", "sh", "tini"]
    there, absent = ("yaml", "pyghmi.ipmi"), ("pip", "setuptools", "mesonpy", "kubernetes.aio", "aiohttp", "grpc")
    names = " ".join((*there, *absent))
    look = f"import importlib.util as u\nfor n in '{names}'.split():\n print(n, u.find_spec(n) is not None)"
    told = dict(line.split() for line in daemon.exec("/opt/nodeagent/bin/python", "-c", look).stdout.splitlines())
    assert told == {name: str(name in there) for name in (*there, *absent)}


def test_byte_code_is_there_and_belongs_to_the_modules(daemon: DaemonInPod) -> None:
    look = "import sys, nodeagent.cli.main as m; print(m.__cached__); print(sys.flags.dont_write_bytecode)"
    cached, dont_write = daemon.exec("/opt/nodeagent/bin/python", "-c", look).stdout.split()
    assert dont_write == "1"
    daemon.exec("test", "-s", cached)
