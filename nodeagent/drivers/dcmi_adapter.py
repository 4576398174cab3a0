"""DCMI inside the driver host: cffi calls, return codes, plain values out (native-abi 5, 6, 7, 15, 17).

No cffi object leaves this module. Arrays and structs are fresh and zeroed for every call.
"""

import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

from nodeagent.core.errors import LibraryError
from nodeagent.drivers.answers import NO_SYMBOL, AnswerDamaged, AnswerError, AnswerKind, check
from nodeagent.drivers.gate import ffi, lib
from nodeagent.drivers.library import foreign_reason

MAX_CARDS = 64
MAX_DEVICES_PER_CARD = 4
MAX_CODES = 128
MAX_ID = 255
_SPARE = 128
_EVENT_NAME_MAX = 80


class DcmiAdapter:
    """The table of calls and the event ring of libdcmi.so."""

    def __init__(self) -> None:
        self._v2 = False
        self._events = ffi.new("struct na_event[]", 64)
        self._dropped = ffi.new("uint64_t *")

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """Calls by name; chips are given as (card, device, logic id)."""
        return {
            "open": self.open,
            "generations": self.generations,
            "init": self.init,
            "version": self.version,
            "cards": self.cards,
            "devices": self.devices,
            "devices_in_card": self.devices_in_card,
            "logic_id": self.logic_id,
            "physical_id": self.physical_id,
            "chip_info": self.chip_info,
            "board_id": self.board_id,
            "mainboard_id": self.mainboard_id,
            "super_pod": self.super_pod,
            "cores": self.cores,
            "memory": self.memory,
            "address": self.address,
            "super_device": self.super_device,
            "product_type": self.product_type,
            "health": self.health,
            "network_health": self.network_health,
            "codes": self.codes,
            "subscribe": self.subscribe,
        }

    def event_fd(self) -> int:
        """The ring's eventfd, -1 before `open`."""
        return lib.na_dcmi_event_fd()

    def drain(self, room: int) -> tuple[list[list[Any]], int]:
        """Events as [code, logic id, assertion, severity, mono_ns, node type, node id, name]; total of drops."""
        events: list[list[Any]] = []
        while len(events) < room:
            got = lib.na_dcmi_drain(self._events, min(64, room - len(events)), self._dropped)
            events += [_plain(self._events[i]) for i in range(got)]
            if got < 64:
                break
        return events, int(self._dropped[0])

    def open(self, path: str) -> None:
        """Load the library. Raises LibraryError: not loadable, or not DCMI."""
        if lib.na_dcmi_open(os.fsencode(path)) != 0:
            reason = foreign_reason(path) or ffi.string(lib.na_dcmi_load_error()).decode(errors="replace")
            raise LibraryError(
                f"{path} could not be loaded: {reason}",
                "it must be the driver library of this machine's architecture, with its companions in LD_LIBRARY_PATH",
            )
        if not lib.na_dcmi_has(b"dcmi_init") and not lib.na_dcmi_has(b"dcmiv2_init"):
            raise LibraryError(
                f"{path} is a library, but not DCMI: it has neither dcmi_init nor dcmiv2_init",
                "name libdcmi.so of the Ascend driver in driver.library",
            )

    def generations(self) -> list[str]:
        """v1, v2: those whose symbols the loaded library has. Which one works, only `init` can tell."""
        symbols = (("v1", b"dcmi_init"), ("v2", b"dcmiv2_init"))
        return [generation for generation, symbol in symbols if lib.na_dcmi_has(symbol)]

    def init(self, wanted: str) -> str:
        """Initialise the first generation that accepts; wanted: auto, v1 or v2. The generation in use comes back.

        Takes seconds on real drivers. Raises AnswerError of v1 when neither works (2.2: v1 says -8255 on a 950).
        """
        tried = {"auto": (1, 2), "v1": (1,), "v2": (2,)}[wanted]
        codes = []
        for generation in tried:
            rc = lib.na_dcmi_init(generation)
            if rc == 0:
                self._v2 = generation == 2
                return f"v{generation}"
            codes.append((generation, rc))
        # The answer worth telling is the one of the generation that this product has.
        generation, rc = next(((g, r) for g, r in codes if r not in (NO_SYMBOL, -8255)), codes[0])
        raise AnswerError("dcmi_init" if generation == 1 else "dcmiv2_init", rc)

    def version(self) -> str:
        """DCMI version text."""
        text = ffi.new("char[]", 256)
        check(self._name("get_dcmi_version"), lib.na_dcmi_version(text, 256))
        return ffi.string(text).decode(errors="replace")

    def cards(self) -> list[int]:
        """Card ids (v1). Negative ids are holes and are left out (5.2)."""
        count, ids = ffi.new("int *"), ffi.new("int[]", MAX_CARDS + _SPARE)
        check("dcmi_get_card_list", lib.na_dcmi_card_list(count, ids, MAX_CARDS))
        if not 0 <= count[0] <= MAX_CARDS:
            raise AnswerDamaged("dcmi_get_card_list", f"a card count of {count[0]}, outside 0..{MAX_CARDS}")
        return [ids[i] for i in range(count[0]) if ids[i] >= 0]

    def devices(self) -> list[int]:
        """Logic ids (v2)."""
        count, ids = ffi.new("int *"), ffi.new("int[]", MAX_CARDS + _SPARE)
        check("dcmiv2_get_device_list", lib.na_dcmi_device_list(count, ids, MAX_CARDS))
        if not 0 <= count[0] <= MAX_CARDS:
            raise AnswerDamaged("dcmiv2_get_device_list", f"a device count of {count[0]}, outside 0..{MAX_CARDS}")
        return [ids[i] for i in range(count[0]) if ids[i] >= 0]

    def devices_in_card(self, card: int) -> int:
        """Number of NPUs in a card, 1..4 (v1)."""
        count = ffi.new("int *")
        check("dcmi_get_device_num_in_card", lib.na_dcmi_device_num_in_card(card, count))
        if not 1 <= count[0] <= MAX_DEVICES_PER_CARD:
            raise AnswerDamaged("dcmi_get_device_num_in_card", f"{count[0]} devices, outside 1..{MAX_DEVICES_PER_CARD}")
        return int(count[0])

    def logic_id(self, card: int, device: int) -> int:
        """Logic id of a device in a card, 0..255 (v1)."""
        logic = ffi.new("int *", -1)
        check("dcmi_get_device_logic_id", lib.na_dcmi_logic_id(card, device, logic))
        return _in_range("dcmi_get_device_logic_id", int(logic[0]))

    def physical_id(self, logic: int) -> int:
        """Physical id of a logic id, 0..255."""
        physical = ffi.new("unsigned int *")
        name = "dcmiv2_get_chip_phy_id_by_dev_id" if self._v2 else "dcmi_get_device_phyid_from_logicid"
        check(name, lib.na_dcmi_physical_id(logic, physical))
        return _in_range(name, int(physical[0]))

    def chip_info(self, card: int, device: int, logic: int) -> str:
        """Chip name. All of name, type and version empty is a damaged answer (5.3)."""
        name, info = self._chip_info(card, device, logic)
        chip_name = _text(info.chip_name)
        if not (chip_name or _text(info.chip_type) or _text(info.chip_ver)):
            raise AnswerDamaged(name, "an empty chip description")
        return chip_name

    def board_id(self, card: int, device: int, logic: int) -> int:
        """Board id of a chip."""
        info = ffi.new("struct dcmi_board_info *")
        check(self._name("get_device_board_info"), lib.na_dcmi_board_info(card, device, logic, info))
        return int(info.board_id)

    def mainboard_id(self, card: int, device: int, logic: int) -> int:
        """Main board id; 0xffffffff = none."""
        value = ffi.new("unsigned int *")
        check(self._name("get_mainboard_id"), lib.na_dcmi_mainboard_id(card, device, logic, value))
        return int(value[0])

    def super_pod(self, card: int, device: int, logic: int) -> list[int]:
        """[super pod id, server index, chassis id, pod type], unsigned 32-bit (10.1)."""
        info = ffi.new("struct dcmi_spod_info *")
        check(self._name("get_device_info"), lib.na_dcmi_super_pod(card, device, logic, info))
        return [int(info.super_pod_id), int(info.server_id), int(info.chassis_id), int(info.super_pod_type)]

    def cores(self, card: int, device: int, logic: int) -> int:
        """AI core count (5.3)."""
        return int(self._chip_info(card, device, logic)[1].aicore_cnt)

    def memory(self, card: int, device: int, logic: int) -> int:
        """Size of the on-chip memory in MB (13)."""
        info = ffi.new("struct dcmi_hbm_info *")
        check(self._name("get_device_hbm_info"), lib.na_dcmi_hbm_info(card, device, logic, info))
        return int(info.memory_size)

    def address(self, card: int, device: int, _logic: int) -> str:
        """Address of the RoCE port (v1): IPv4, or IPv6 where the driver has no IPv4 (11.4)."""
        refusals: list[AnswerError] = []
        for ip_type, family, octets in ((0, socket.AF_INET, 4), (1, socket.AF_INET6, 16)):
            ip = ffi.new("struct dcmi_ip_addr *")
            rc = lib.na_dcmi_roce_address(card, device, ip_type, ip)
            if rc == 0:
                return socket.inet_ntop(family, bytes(ffi.buffer(ip))[:octets])
            refusals.append(AnswerError("dcmi_get_device_ip", rc))
            if refusals[0].kind is AnswerKind.NOT_SUPPORTED:
                break
        raise refusals[0]

    def super_device(self, card: int, device: int, logic: int) -> list[int]:
        """[SDID, chassis id], unsigned 32-bit; the chassis is 0 where the word is only reserved (10.1)."""
        info = ffi.new("struct dcmi_spod_info *")
        check(self._name("get_device_info"), lib.na_dcmi_super_pod(card, device, logic, info))
        return [int(info.sdid), int(info.chassis_id) if self._v2 else 0]

    def product_type(self, card: int, device: int, _logic: int) -> str:
        """Product type text (v1; 5.2)."""
        text = ffi.new("char[]", 128)
        check("dcmi_get_product_type", lib.na_dcmi_product_type(card, device, text, 128))
        return ffi.string(text).decode(errors="replace").strip()

    def health(self, card: int, device: int, logic: int) -> int:
        """Return code of the health query: the value itself decides nothing (6.4), -8012 means card dropped."""
        value = ffi.new("unsigned int *")
        return lib.na_dcmi_health(card, device, logic, value)

    def network_health(self, card: int, device: int, logic: int) -> list[int]:
        """[rc, result of the gateway detection]: 0..8, or nonsense that the caller refuses (6.2).

        0 would mean healthy, so the result starts as -1: an answer that was never written is no answer.
        """
        result = ffi.new("int *", -1)
        rc = lib.na_dcmi_network_health(card, device, logic, result)
        return [rc, int(result[0])]

    def codes(self, card: int, device: int, logic: int) -> list[Any]:
        """[rc of the code query, count, codes, rc of the health query]: the raw material of 6.4."""
        count, listed = ffi.new("int *"), ffi.new("unsigned int[]", MAX_CODES + _SPARE)
        rc = lib.na_dcmi_error_codes(card, device, logic, count, listed, MAX_CODES)
        n = int(count[0])
        return [rc, n, [int(listed[i]) for i in range(max(0, min(n, MAX_CODES)))], self.health(card, device, logic)]

    def subscribe(self) -> None:
        """Subscribe to every event of every chip; once per process (7.4)."""
        check(self._name("subscribe_fault_event"), lib.na_dcmi_subscribe())

    def _chip_info(self, card: int, device: int, logic: int) -> tuple[str, Any]:
        info = ffi.new("struct dcmi_chip_info_v2 *")
        name = self._name("get_device_chip_info" if self._v2 else "get_device_chip_info_v2")
        check(name, lib.na_dcmi_chip_info(card, device, logic, info))
        return name, info

    def _name(self, tail: str) -> str:
        return f"dcmiv2_{tail}" if self._v2 else f"dcmi_{tail}"


def _plain(item: Any) -> list[Any]:
    event = item.event.event_t.dms_event
    name = _text(event.event_name)[:_EVENT_NAME_MAX]
    return [
        int(event.event_id),
        int(event.deviceid),
        int(event.assertion),
        int(event.severity),
        int(item.mono_ns),
        int(event.node_type),
        int(event.node_id),
        name,
    ]


def _text(field: Any) -> str:
    """A fixed-size text field: it ends at the first NUL or with the field."""
    return bytes(ffi.buffer(field)).partition(b"\0")[0].decode(errors="replace").strip()


def _in_range(function: str, value: int) -> int:
    if not 0 <= value <= MAX_ID:
        raise AnswerDamaged(function, f"id {value}, outside 0..{MAX_ID}")
    return value
