"""Small switch libraries of a test, loaded through the path of the real one."""

from collections.abc import Mapping

INIT, SUBSCRIBE, QUERY = "lq_dcmi_init", "lq_dcmi_subscribe_fault_event", "lq_dcmi_get_fault_info"

_HEAD = '#include <string.h>\n#include "na_lingqu.h"\n#define PUBLIC __attribute__((visibility("default")))\n'
PARTS = {
    INIT: "PUBLIC int lq_dcmi_init(void) { return 0; }\n",
    SUBSCRIBE: "PUBLIC int lq_dcmi_subscribe_fault_event(struct lq_dcmi_event_filter f,\n"
    "    lq_dcmi_fault_event_handler h) { (void)f; (void)h; return 0; }\n",
    QUERY: "PUBLIC int lq_dcmi_get_fault_info(unsigned n, unsigned *c, struct LqDcmiEvent *l)\n"
    "{ (void)n; (void)l; *c = 0; return 0; }\n",
}
"""The C text of each function: no fault, and no event ever."""


def library_text(parts: Mapping[str, str] = PARTS) -> str:
    """The C text of a library of these functions, for `kit.daemon.compile_library`."""
    return _HEAD + "".join(parts.values())


def without(name: str) -> dict[str, str]:
    """All functions but one."""
    return {key: text for key, text in PARTS.items() if key != name}
