"""Facts about a chip: which product has which, and what the raw answers mean (native-abi 5, 10, 11.4, 13, 19)."""

import ipaddress
from typing import Any

from nodeagent.core.model import Family
from nodeagent.core.node_facts import FactKind
from nodeagent.drivers.answers import AnswerDamaged

FUNCTIONS: dict[FactKind, str] = {
    FactKind.CORES: "dcmi_get_device_chip_info_v2",
    FactKind.MEMORY: "dcmi_get_device_hbm_info",
    FactKind.ADDRESS: "dcmi_get_device_ip",
    FactKind.SUPER_DEVICE: "dcmi_get_device_info",
    FactKind.PRODUCT_TYPE: "dcmi_get_product_type",
}
"""The function of the v1 library behind each question."""

_K = FactKind
_WANTED: dict[Family, tuple[FactKind, ...]] = {
    Family.A310: (_K.CORES,),
    Family.A310B: (_K.CORES,),
    Family.A310P: (_K.CORES, _K.PRODUCT_TYPE),
    Family.A910: (_K.CORES, _K.MEMORY, _K.ADDRESS),
    Family.A2: (_K.CORES, _K.MEMORY, _K.ADDRESS),
    Family.A3: (_K.CORES, _K.MEMORY, _K.ADDRESS, _K.SUPER_DEVICE),
    Family.A5: (_K.CORES, _K.MEMORY, _K.SUPER_DEVICE),
}
"""The matrix of native-abi 19. An A2 card has no address: its driver says so itself."""

_MB_PER_GIB = 1024
_MAX_CORES = 1024
_MAX_U32 = 0xFFFFFFFF
_PRODUCT_TYPE_MAX = 64


def wanted_facts(family: Family) -> tuple[FactKind, ...]:
    """What is worth asking a chip of this family."""
    return _WANTED[family]


def judge_fact(kind: FactKind, raw: Any) -> int | str:
    """The fact of a raw answer of the adapter, in the units of `ChipFacts`.

    raw: cores; memory in MB; address text; [SDID, chassis id]; product type text. Raises AnswerDamaged for what
    cannot be true: it would be published for all to see.
    """
    function = FUNCTIONS[kind]
    if kind is FactKind.CORES:
        return _between(function, "an AI core count", int(raw), 1, _MAX_CORES)
    if kind is FactKind.MEMORY:
        return _between(function, "a memory size in MB", int(raw), _MB_PER_GIB, _MAX_U32) // _MB_PER_GIB
    if kind is FactKind.ADDRESS:
        return _address(function, str(raw))
    if kind is FactKind.SUPER_DEVICE:
        sdid, chassis_id = (int(word) for word in raw)
        # On the 950 a chassis id with bit 31 set disqualifies the whole answer (native-abi 10.1).
        if chassis_id & 0x80000000:
            raise AnswerDamaged(function, f"a chassis id of 0x{chassis_id:x}")
        return _between(function, "an SDID", sdid, 0, _MAX_U32)
    text = str(raw)
    if not 0 < len(text) <= _PRODUCT_TYPE_MAX or not text.isprintable():
        raise AnswerDamaged(function, f"a product type of {text!r}")
    return text


def _between(function: str, what: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise AnswerDamaged(function, f"{what} of {value}, outside {low}..{high}")
    return value


def _address(function: str, text: str) -> str:
    """The address in its usual spelling; link-local IPv6 is of no use to another node (native-abi 11.4)."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise AnswerDamaged(function, f"an address of {text!r}") from None
    if address.is_unspecified or (address.version == 6 and address.is_link_local):
        raise AnswerDamaged(function, f"the address {address}, which reaches nobody")
    return str(address)
