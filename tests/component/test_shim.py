"""The C shim: its stress program, and drivers whose structs have grown. Sanitizer runs are in tools/sanitize.sh."""

import shutil
import subprocess
from pathlib import Path

import pytest
from kit.daemon import compile_c, compile_library

from nodeagent.drivers.chips import DcmiSettings, HostedChips
from nodeagent.drivers.host import Reaper

TREE = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

STRICT = ("-Wall", "-Wextra", "-Werror", "-I", TREE / "native/include", "-I", TREE / "native/shim")

GENEROUS = """
#include <string.h>
#include "na_dcmi.h"
#define PUBLIC __attribute__((visibility("default")))
PUBLIC int dcmi_init(void) { return 0; }
PUBLIC int dcmi_get_card_list(int *n, int *ids, int room) { (void)room; *n = 1; ids[0] = 3; return 0; }
PUBLIC int dcmi_get_device_num_in_card(int c, int *n) { (void)c; *n = 1; return 0; }
PUBLIC int dcmi_get_device_logic_id(int *l, int c, int d) { (void)c; (void)d; *l = 0; return 0; }
PUBLIC int dcmi_get_device_phyid_from_logicid(unsigned l, unsigned *p) { (void)l; *p = 7; return 0; }
/* Every struct 400 bytes larger than in our header, as after a driver update. */
PUBLIC int dcmi_get_device_chip_info_v2(int c, int d, struct dcmi_chip_info_v2 *i)
{ (void)c; (void)d; memset(i, 0x5A, sizeof *i + 400); memset(i, 0, sizeof *i);
  strcpy((char *)i->chip_name, "910B4"); return 0; }
PUBLIC int dcmi_get_device_board_info(int c, int d, struct dcmi_board_info *i)
{ (void)c; (void)d; memset(i, 0x5A, sizeof *i + 400); i->board_id = 0x30; return 0; }
PUBLIC int dcmi_get_device_info(int c, int d, int m, unsigned s, void *b, unsigned *z)
{ (void)c; (void)d; (void)m; (void)s; (void)z;
  memset(b, 0x5A, sizeof(struct dcmi_spod_info) + 400); return 0; }
/* Fills its whole list, and says that one entry counts. */
PUBLIC int dcmi_get_device_errorcode_v2(int c, int d, int *n, unsigned *codes, unsigned room)
{ (void)c; (void)d; for (unsigned i = 0; i < room; i++) codes[i] = 0x80E18005 + i; *n = 1; return 0; }
PUBLIC int dcmi_get_device_health(int c, int d, unsigned *h) { (void)c; (void)d; *h = 0; return 0; }
"""


NATIVE = TREE / "tests/native"
HIDDEN = ("-shared", "-fPIC", "-fvisibility=hidden")


def stress(folder: Path, program: str, shim: str) -> Path:
    """A compiled stress program."""
    parts = [TREE / f"native/shim/{name}.c" for name in ("ring", "shim_common", shim)]
    compile_c(*STRICT, NATIVE / f"{program}.c", *parts, "-o", folder / program, "-pthread", "-ldl")
    return folder / program


@pytest.mark.parametrize(
    ("program", "library", "shim"),
    [("shim_stress", "burst_library", "dcmi_shim"), ("lq_stress", "lq_burst_library", "lq_shim")],
)
def test_every_event_of_four_threads_is_read_in_order_or_counted_as_dropped(
    tmp_path: Path, program: str, library: str, shim: str
) -> None:
    path = tmp_path / f"{library}.so"
    compile_c(*STRICT, *HIDDEN, NATIVE / f"{library}.c", "-o", path, "-pthread")
    words = [stress(tmp_path, program, shim), path]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_switch_function_that_is_missing_is_named_and_never_called(tmp_path: Path) -> None:
    """Upstream calls through NULL there (lingqu-switch-faults 2.1)."""
    path = tmp_path / "incomplete.so"
    compile_c(*STRICT, *HIDDEN, "-DWITHOUT_QUERY", NATIVE / "lq_burst_library.c", "-o", path, "-pthread")
    words = [stress(tmp_path, "lq_stress", "lq_shim"), "incomplete", path]
    assert subprocess.run(words, check=False, timeout=50).returncode == 0


def test_a_driver_whose_structs_have_grown_damages_nothing(tmp_path: Path) -> None:
    """Lesson 44: a driver update added fields, and the process that used it died in a loop."""
    path = compile_library(tmp_path, GENEROUS)
    chips = HostedChips("grown", DcmiSettings(library=str(path), trust=True), Reaper(), lambda _: None)
    try:
        opened = chips.open(())
        (chip,) = opened.inventory.chips
        assert (chip.logic_id, chip.physical_id, chip.card_id) == (0, 7, 3)
        assert (opened.inventory.product.chip_name, opened.inventory.product.board_id) == ("910B4", 0x30)
        assert opened.inventory.product.super_pod.super_pod_id == 0x5A5A5A5A
        for _ in range(50):
            assert chips.codes(chip).codes == (0x80E18005,)
    finally:
        chips.close()
