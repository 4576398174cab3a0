"""What can be done to the board and the storage clients of a mock node: rows of the table in nodeagent.mock.actions."""

from collections.abc import Callable, Mapping
from typing import Any

from nodeagent.core.errors import MockError
from nodeagent.core.storage import StorageClient
from nodeagent.mock.action import Action, Outcome, Param
from nodeagent.mock.bmc import ALARM_SEVERITIES, HUAWEI, MAX_LABEL_CHARACTERS, BmcFault
from nodeagent.mock.board import NO_SINGLE_DEVICE, StartAlarm
from nodeagent.mock.kinds import (
    ALARM_SEVERITY,
    BYTE,
    CODE,
    COMPLETION_CODE,
    DPC_INSTANCES,
    DTFS_INSTANCES,
    FLAG,
    LABEL_PART,
    MANUFACTURER,
    MODE,
    PAGE,
    SECONDS,
    SUBJECT,
    TEXT,
    TIMES,
    U16,
    U32,
    Kind,
)
from nodeagent.mock.node import MockNode
from nodeagent.mock.storage import MODE as TRUSTED_MODE
from nodeagent.mock.storage import StorageFile, file_text

STORAGE_GROUP = "storage_"
"""Prefix of the names of actions on storage clients; on the command line they are `nodeagent mock storage NAME`."""

_CODE = Param("code", CODE, "alarm code, eight hexadecimal digits (quoted in YAML)", required=True)
_ONE_HEALTHY = (frozenset[str](),)


def _raise_alarm(node: MockNode, v: Mapping[str, Any]) -> Outcome:
    node.board.raise_alarm(StartAlarm(v["code"], v["device_id"], v["severity"], v["subject"], v["raised_s"]))
    return []


def _clear_alarm(node: MockNode, v: Mapping[str, Any]) -> Outcome:
    node.board.clear_alarm(v["code"], v["device_id"])
    return []


def _bmc(node: MockNode, v: Mapping[str, Any]) -> Outcome:
    fault = BmcFault(
        completion_code=v["completion_code"],
        cut_bytes=v["cut_bytes"],
        count=v["count"],
        delay_ms=round(v["delay_s"] * 1000),
        empty=v["empty"],
        silent=v["silent"],
        from_index=v["from_index"],
        times=v["times"],
        manufacturer_id=v["manufacturer_id"],
        total=v["total"],
        next_total=v["next_total"],
        label_code=v["label_code"],
        label_part=v["label_part"],
    )
    node.board.disturb(fault, page=v["page"], present=not v["gone"])
    return []


def _storage(client: StorageClient) -> Callable[[MockNode, Mapping[str, Any]], Outcome]:
    def put(node: MockNode, v: Mapping[str, Any]) -> Outcome:
        given = [name for name in ("instances", "text", "mode") if v[name] is not None]
        if v["gone"] and given:
            raise MockError(f"a file that is gone has no {given[0]}", "name either gone or what the file is")
        if v["instances"] is not None and v["text"] is not None:
            raise MockError("the file has either instances or a text", "name one of them")
        file = None
        if not v["gone"]:
            mode = TRUSTED_MODE if v["mode"] is None else v["mode"]
            if v["text"] is None:
                instances = _ONE_HEALTHY if v["instances"] is None else v["instances"]
                file = StorageFile(file_text(client, instances), mode, instances)
            else:
                file = StorageFile(v["text"], mode)
        node.storage.put(client, file)
        return []

    return put


def _storage_action(client: StorageClient, instances: Kind, words: str, example: str) -> Action:
    return Action(
        f"{STORAGE_GROUP}{client.value}",
        f"say what the state file of the {client.value.upper()} client is; without a key: there, one healthy instance",
        (
            Param(
                "instances", instances, f"what each instance is: ok, {words}, or both joined by +; none = empty file"
            ),
            Param("text", TEXT, "the whole text of the file, in place of instances"),
            Param("mode", MODE, "permission bits, octal (quoted in YAML; default: 0444)"),
            Param("gone", FLAG, "there is no file, as without the kernel module", default=False),
        ),
        _storage(client),
        example,
    )


BOARD_ACTIONS = (
    Action(
        "raise_alarm",
        "let the BMC list an alarm of the board",
        (
            _CODE,
            Param("device_id", BYTE, "device number, 255 = no single device (default: 255)", default=NO_SINGLE_DEVICE),
            Param("severity", ALARM_SEVERITY, "normal, minor, major or critical", default=ALARM_SEVERITIES["major"]),
            Param("subject", SUBJECT, "device type, a name such as PSU or its byte (default: top byte of the code)"),
            Param("raised_s", U32, "time by the clock of the BMC, Unix seconds (default: now)"),
        ),
        _raise_alarm,
        "nodeagent mock raise-alarm --code 0000001D --device-id 1 --severity critical",
    ),
    Action(
        "clear_alarm",
        "take an alarm off the list of the BMC",
        (_CODE, Param("device_id", BYTE, "only of this device (default: of all)")),
        _clear_alarm,
        "nodeagent mock clear-alarm --code 0000001D",
    ),
    Action(
        "bmc",
        "let the BMC answer wrongly, late or not at all, in place of what was wrong with it before; "
        "without a key it is well",
        (
            Param("completion_code", COMPLETION_CODE, "of a page, in its place: two hexadecimal digits", default=0),
            Param("cut_bytes", BYTE, "so many bytes are missing at the end of a page", default=0),
            Param("count", BYTE, "count byte of a page (default: the truth)"),
            Param("delay_s", SECONDS, "seconds until a page comes", default=0.0),
            Param("empty", FLAG, "a page without alarms", default=False),
            Param("silent", FLAG, "no page at all", default=False),
            Param("from_index", U16, "the above only from this index on (default: 0)", default=0),
            Param("times", TIMES, "the above only for so many pages (default: all)", default=0),
            Param("manufacturer_id", MANUFACTURER, "id in pages (default: 0x0007DB, Huawei)", default=HUAWEI),
            Param("total", U16, "total in pages (default: the truth)"),
            Param("next_total", U16, "total in pages but the first (default: as there)"),
            Param("label_code", COMPLETION_CODE, "completion code in place of the serial number", default=0),
            Param("label_part", LABEL_PART, "bytes of the serial number in one answer", default=MAX_LABEL_CHARACTERS),
            Param("page", PAGE, "most alarms of a page from now on, 1..16"),
            Param("gone", FLAG, "no way to a BMC, as without the device file", default=False),
        ),
        _bmc,
        "nodeagent mock bmc --completion-code C3 --times 3",
    ),
    _storage_action(
        StorageClient.DPC,
        DPC_INSTANCES,
        "process or memory",
        "nodeagent mock storage dpc --instances ok,process+memory",
    ),
    _storage_action(
        StorageClient.DTFS, DTFS_INSTANCES, "process or link", "nodeagent mock storage dtfs --instances link"
    ),
)
