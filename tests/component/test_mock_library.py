"""The mock library as foreign programs meet it: a C client on every product, exported names, sanitizers."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from kit.abi_client import AbiClient, event_filter, out

import nodeagent
from nodeagent.mock.functions import BY_NAME, group_supported, is_v2
from nodeagent.mock.launch import MockServer, library_dir
from nodeagent.mock.products import PRODUCTS

TREE = Path(__file__).resolve().parents[2]
INCLUDE = Path(nodeagent.__file__).parent / "include"
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g"]
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def compile_c(*words: object) -> None:
    done = subprocess.run(["cc", *FLAGS, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Client and library by name of the sanitizer ("" = none); each is built once."""
    built: dict[str, tuple[Path, Path]] = {}

    def make(sanitizer: str) -> tuple[Path, Path]:
        if sanitizer not in built:
            folder = tmp_path_factory.mktemp("client")
            library = library_dir()
            flags = [f"-fsanitize={sanitizer}"] if sanitizer else []
            if sanitizer:
                library = folder
                sources = sorted(set((TREE / "native/mock").glob("*.c")) - {TREE / "native/mock/lingqu.c"})
                hidden = ["-shared", "-fPIC", "-fvisibility=hidden"]
                compile_c(*flags, *hidden, "-I", INCLUDE, *sources, "-lpthread", "-o", folder / "libdcmi.so")
            client = folder / "client"
            source = TREE / "tests/native/plugin_client.c"
            compile_c(*flags, "-I", INCLUDE, source, library / "libdcmi.so", "-lpthread", "-o", client)
            built[sanitizer] = (client, library)
        return built[sanitizer]

    return make


@pytest.mark.parametrize("sanitizer", ["", "address", "thread"])
@pytest.mark.parametrize("profile", PRODUCTS)
def test_plugin_start_up(build, profile, sanitizer):
    """Start-up order of a device plugin: all answers as the sheet has them, an injected event arrives."""
    client, library = build(sanitizer)
    with MockServer.start(profile) as server, server.control() as control:
        environment = dict(os.environ, LD_LIBRARY_PATH=str(library), NODEAGENT_MOCK_SOCKET=server.socket)
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [client, profile], env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        ) as process:
            seen = []
            for line in process.stdout:
                seen.append(line.rstrip("\n"))
                if line == "subscribed\n":
                    (event,) = control.raise_fault(1, "80E18005", severity="critical", name="probe")
                    process.stdin.close()
                    assert [callback.pid for callback in event.callbacks] == [process.pid]
            complaints = process.stderr.read()
    assert process.returncode == 0, "\n".join([*seen, complaints])
    if profile not in ("310", "310p"):
        assert any(line.startswith("event 80E18005 chip 1 severity 3 assertion 1") for line in seen)
    assert complaints == ""


def test_client_notices_a_wrong_product(build):
    """The C client can fail: on another product than it was told, it does."""
    client, library = build("")
    with MockServer.start("310") as server:
        environment = dict(os.environ, LD_LIBRARY_PATH=str(library), NODEAGENT_MOCK_SOCKET=server.socket)
        done = subprocess.run([client, "310p"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "FAILED cards: got 1, expected 2" in done.stdout


@pytest.mark.parametrize(
    ("library", "header", "least"), [("libdcmi.so", "na_dcmi.h", 100), ("liblingqu-dcmi.so", "na_lingqu.h", 5)]
)
def test_exactly_the_abi_is_exported(library, header, least):
    """Every prototype of the header is there, and nothing else shows (18.1)."""
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", library_dir() / library], capture_output=True, text=True, check=True
    )
    exported = {line.split()[-1] for line in listing.stdout.splitlines()}
    declared = set(re.findall(r"^int ((?:lq_)?dcmi\w+)\(", (INCLUDE / header).read_text(), re.MULTILINE))
    assert len(declared) >= least
    assert exported == declared


def test_layout_is_proven_at_compile_time(tmp_path):
    """A size that is wrong does not compile: the assertions are real."""
    good, bad = tmp_path / "good.c", tmp_path / "bad.c"
    good.write_text('#include "na_abi_sizes.h"\n')
    bad.write_text(good.read_text() + '_Static_assert(sizeof(struct dcmi_event) == 352, "union offset");\n')
    compile_c("-I", INCLUDE, "-c", good, "-o", tmp_path / "good.o")
    done = subprocess.run(
        ["cc", "-I", INCLUDE, "-c", bad, "-o", tmp_path / "bad.o"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "union offset" in done.stderr


def zeros(parameters: str) -> list[object]:
    """Arguments for a prototype: zero for numbers, large zeroed buffers for pointers, a zero filter."""
    values: list[object] = []
    for parameter in parameters.split(","):
        if "*" in parameter:
            values.append(out(65536))
        elif "struct dcmi_event_filter" in parameter:
            values.append(event_filter())
        elif parameter.strip() != "void":
            values.append(0)
    return values


@pytest.mark.parametrize("profile", PRODUCTS)
def test_every_function_on_every_product(profile):
    """The other generation is -8255 throughout (18.2 row 2), and so is what section 19 does not have."""
    header = re.sub(r"\s+", " ", (INCLUDE / "na_dcmi.h").read_text())
    prototypes = re.findall(r"int (dcmi\w+)\(([^)]*)\);", header)
    v2 = PRODUCTS[profile].v2
    with MockServer.start(profile) as server:
        client = AbiClient(library_dir() / "libdcmi.so", server.environment())
        try:
            answers = {}
            for name, parameters in [("dcmiv2_init" if v2 else "dcmi_init", "void"), *prototypes]:
                if "subscribe" not in name:
                    answers[name] = client.call(name, *zeros(parameters)).rc
        finally:
            client.close()
    assert len(answers) == sum(name.startswith("dcmi") for name in BY_NAME) - 2
    for name, rc in answers.items():
        if is_v2(name) != v2 or not group_supported(BY_NAME[name].group, profile):
            assert rc == -8255, name
        else:
            # Zero is no valid value everywhere: types (-8001, -8255 for dies and memories), ports and times.
            assert rc in (0, -8001, -8006, -8023, -8255), name
    base = {name: rc for name, rc in answers.items() if is_v2(name) == v2 and BY_NAME[name].group == "base"}
    assert sum(rc == 0 for rc in base.values()) > len(base) / 2


@pytest.mark.parametrize("named", [True, False], ids=["nobody serves", "no socket named"])
def test_without_a_server(tmp_path, named):
    """Init says -8005 and one clear line, however often it is called; other calls -8005."""
    source = tmp_path / "lost.c"
    source.write_text(
        '#include "na_dcmi.h"\n'
        "int main(void) { unsigned health; return dcmi_init() == -8005 && dcmiv2_init() == -8005\n"
        "    && dcmi_init() == -8005 && dcmi_get_device_health(0, 0, &health) == -8005 ? 0 : 1; }\n"
    )
    library = library_dir()
    compile_c("-I", INCLUDE, source, library / "libdcmi.so", "-o", tmp_path / "lost")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library)}
    environment.pop("NODEAGENT_MOCK_SOCKET", None)
    if named:
        environment["NODEAGENT_MOCK_SOCKET"] = str(tmp_path / "nobody")
    done = subprocess.run([tmp_path / "lost"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert "mock driver library" in line
    assert "NODEAGENT_MOCK_SOCKET" in line
