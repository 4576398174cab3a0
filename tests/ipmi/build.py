#!/usr/bin/env python3
"""Prepare a simulated BMC and a guest with a real IPMI driver for the tests.

Usage: build.py [--check | --packages]

Puts into `.bin/` beside this file, once; later calls find that nothing has changed:
  ibmc_module.so   what ipmi_sim answers to Huawei's commands; from ibmc_module.c
  vmlinux          the kernel of this Debian, unpacked, which saves the guest minutes without hardware help
  initramfs        busybox, modules of that kernel and guest_init.sh: 4 MB, its root is the host's root
The kernel comes by `apt-get download`, 71 MB, which are removed when the parts that count are out of it.

--check: fetch what comes from elsewhere and build nothing; exit code 0 when the rest can be done here, 1 with a
sentence on standard output when not.
--packages: print what is needed of Debian's packages beside a C compiler.
Exit codes: 0 fine, 1 not possible, and why.
"""

import fcntl
import gzip
import hashlib
import lzma
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BINARIES = HERE / ".bin"
MODULE = BINARIES / "ibmc_module.so"
KERNEL = BINARIES / "vmlinux"
INITRAMFS = BINARIES / "initramfs"
MODULES = BINARIES / "modules"
"""Kernel modules as files, for a test that loads one later than the guest's start."""

GUESTS = {"x86_64": ("qemu-system-x86_64", "linux-image-amd64")}
"""Processor -> emulator, and Debian's package that names the newest kernel. Not the kernel for clouds: it has no IPMI.
Processors that are not here have no ISA bus for the interface to the BMC, and no guest in our tests."""
ORDER = (
    *("ipmi_msghandler", "ipmi_devintf", "ipmi_si"),
    *("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"),
    *("9pnet", "9pnet_virtio", "netfs", "fscache", "9p"),
)
"""Kernel modules in the order of loading; a kernel that has one built in has no file for it."""
OPTIONAL = {"fscache", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio", "virtio_ring", "virtio_pci"}
"""Those that some kernels of Debian have as parts of others, or built in."""
HEADER = Path("/usr/include/OpenIPMI/mcserv.h")
BUSYBOX = Path("/bin/busybox")


class NotPossible(Exception):
    """One sentence that says what is missing and what helps."""


def guest_possible() -> str:
    """Why there is no guest on this kind of machine; empty when there is one."""
    machine = platform.machine()
    return "" if machine in GUESTS else f"no guest with an IPMI interface is known for {machine}"


def packages() -> list[str]:
    """Debian's packages with the programs that `check_tools` looks for."""
    simulator = ["openipmi", "libopenipmi-dev", "ipmitool"]
    return simulator if guest_possible() else [*simulator, "qemu-system-x86", "busybox-static"]


def check_tools() -> None:
    """Raises NotPossible when a program or header is not installed."""
    programs, files = ["cc", "ipmi_sim", "ipmitool"], [HEADER]
    if not guest_possible():
        programs += [GUESTS[platform.machine()][0], "apt-get", "dpkg-deb"]
        files.append(BUSYBOX)
    missing = [program for program in programs if shutil.which(program) is None]
    missing += [str(file) for file in files if not file.exists()]
    if missing:
        raise NotPossible(f"not installed: {', '.join(missing)} (apt-get install {' '.join(packages())})")


def fetch_kernel() -> None:
    """Have `vmlinux` and its modules in `.bin/`. Raises NotPossible."""
    if guest_possible() or (KERNEL.exists() and MODULES.is_dir()):
        return
    meta = GUESTS[platform.machine()][1]
    known = _words(["apt-cache", "depends", meta])
    found = re.search(r"Depends: (linux-image-\S+)", known)
    if found is None:
        raise NotPossible(f"apt knows no package {meta} (apt-get update may help)")
    package = found[1]
    with tempfile.TemporaryDirectory(dir=BINARIES) as name:
        folder = Path(name)
        _say(f"downloading {package}, about 71 MB")
        try:
            subprocess.run(["apt-get", "download", "-q", package], cwd=folder, stdout=sys.stderr, check=True)
            (archive,) = folder.glob("*.deb")
        except (subprocess.CalledProcessError, ValueError):
            raise NotPossible(f"apt cannot download {package}") from None
        _unpack(archive, folder)
        fresh = folder / "modules"
        fresh.mkdir()
        for module in ORDER:
            _take_module(folder, module, fresh)
        (image,) = folder.glob("boot/vmlinuz-*")
        (folder / "vmlinux").write_bytes(unpacked_kernel(image.read_bytes()))
        shutil.rmtree(MODULES, ignore_errors=True)
        fresh.replace(MODULES)
        (folder / "vmlinux").replace(KERNEL)  # last: it says that the others are there


def unpacked_kernel(image: bytes) -> bytes:
    """The ELF file in a bzImage (its header: the kernel's Documentation/arch/x86/boot.rst). Raises NotPossible."""
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    payload = image[(setup_sectors + 1) * 512 + offset :][:length]
    if payload.startswith(b"\xfd7zXZ\0"):
        kernel = lzma.LZMADecompressor().decompress(payload)
    elif payload.startswith(b"\x1f\x8b"):
        kernel = gzip.decompress(payload[:-4])  # the last four bytes are the kernel's own note of the size
    else:
        raise NotPossible(f"the kernel is packed in a way that is not known here: {payload[:6].hex(' ')}")
    if not kernel.startswith(b"\x7fELF"):
        raise NotPossible("what is packed in the kernel is no ELF file")
    return kernel


def build() -> None:
    """Everything into `.bin/`. Raises NotPossible."""
    BINARIES.mkdir(exist_ok=True)
    with (BINARIES / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second call waits instead of preparing the same again
        check_tools()
        _build_module()
        fetch_kernel()
        if not guest_possible():
            _build_initramfs()


def check() -> None:
    """Raises NotPossible with what stands in the way of `build`."""
    check_tools()
    BINARIES.mkdir(exist_ok=True)
    with (BINARIES / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fetch_kernel()


def _build_module() -> None:
    source = HERE / "ibmc_module.c"
    if _is_from(MODULE, source):
        return
    new = MODULE.with_suffix(".new")
    warnings = ["-Wall", "-Wextra", "-Werror"]
    command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-g", *warnings, "-fPIC", "-shared", "-o", new, source]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
        raise NotPossible("ibmc_module.c could not be compiled, the compiler said why")
    new.replace(MODULE)
    _note(MODULE, source)


def _build_initramfs() -> None:
    """No device node is made: that would need root, and the kernel's own initramfs has /dev/console."""
    init = HERE / "guest_init.sh"
    sources = (init, KERNEL, Path(__file__))  # this file has the order of the modules
    if _is_from(INITRAMFS, *sources):
        return
    with tempfile.TemporaryDirectory(dir=BINARIES) as name:
        root = Path(name)
        (root / "bin").mkdir()
        shutil.copy(BUSYBOX, root / "bin/busybox")
        shutil.copy(init, root / "init")
        (root / "init").chmod(0o755)
        shutil.copytree(MODULES, root / "modules")
        present = [module for module in ORDER if (MODULES / f"{module}.ko").exists()]
        (root / "modules/order").write_text("".join(f"{module}\n" for module in present))
        files = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
        command = [BUSYBOX, "cpio", "-o", "-H", "newc"]
        done = subprocess.run(command, cwd=root, input="\n".join(files).encode(), capture_output=True, check=False)
        if done.returncode != 0:
            raise NotPossible(f"busybox cpio: {done.stderr.decode().strip()}")
    INITRAMFS.write_bytes(done.stdout)
    _note(INITRAMFS, *sources)


def _unpack(archive: Path, folder: Path) -> None:
    """Only what is wanted: a kernel's modules are half a gigabyte."""
    names = ["./boot/vmlinuz-*", *(f"*/{module}.ko*" for module in ORDER)]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as data:
        command = ["tar", "--extract", "--wildcards", "--directory", folder, *names]
        # Tar reports names that it has not found, and some may be missing: what counts is looked for afterwards.
        subprocess.run(command, stdin=data.stdout, stderr=subprocess.DEVNULL, check=False)
    if data.returncode != 0:
        raise NotPossible(f"{archive.name} cannot be unpacked")


def _take_module(tree: Path, module: str, folder: Path) -> None:
    found = [path for path in tree.rglob(f"{module}.ko*") if path.parent != folder]
    if not found and module not in OPTIONAL:
        raise NotPossible(f"this kernel has no module {module}")
    for path in found[:1]:
        content = path.read_bytes()
        (folder / f"{module}.ko").write_bytes(lzma.decompress(content) if path.suffix == ".xz" else content)


def _is_from(made: Path, *sources: Path) -> bool:
    """It was made from these; contents count, since a fresh checkout has fresh times."""
    note = made.with_suffix(".built-from")
    return made.exists() and note.exists() and note.read_text() == _digest(*sources)


def _note(made: Path, *sources: Path) -> None:
    made.with_suffix(".built-from").write_text(_digest(*sources))


def _digest(*files: Path) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _words(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return done.stdout


def _say(text: str) -> None:
    print(f"ipmi rig: {text}", file=sys.stderr, flush=True)


def main(words: list[str]) -> int:
    """The command line; returns the exit code."""
    if words == ["--packages"]:
        print(" ".join(packages()))
        return 0
    if words not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 0 if words in (["--help"], ["-h"]) else 1
    try:
        if words:
            check()
        else:
            build()
    except NotPossible as error:
        if words:
            print(error)
        else:
            _say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
