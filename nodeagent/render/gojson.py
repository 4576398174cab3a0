"""JSON exactly as Go's `encoding/json` writes it (device-info 5.1).

The consumers never hash the text they receive: they parse it, write it again with Go and hash that. So only
text in Go's own form carries a digest that they accept.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")

_HTML_AND_SEPARATORS = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def go_json(value: object) -> str:
    """Compact JSON of dictionaries, lists, strings, integers, booleans and None (device-info 5.1).

    The order of dictionaries is kept, as Go keeps the order of struct fields: pass free-form maps through
    `go_map` first. Raises ValueError for NaN and the infinities, TypeError for what JSON cannot say.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # The five characters have no role in JSON's own syntax, so replacing them in the whole text is safe.
    return text.translate(_HTML_AND_SEPARATORS)


def go_map(mapping: Mapping[str, Value]) -> dict[str, Value]:
    """The same members in the order in which Go writes a map: by the UTF-8 bytes of the key (device-info 5.1)."""
    return {key: mapping[key] for key in sorted(mapping, key=str.encode)}


def check_code(device_list: Mapping[str, str] | None, update_time_s: int) -> str:
    """`CheckCode` of a `DeviceInfo`: 64 lower-case hex digits (device-info 5.1).

    device_list None is Go's nil map, whose digest differs from that of an empty one. update_time_s: Unix seconds.
    """
    body = {
        "DeviceList": None if device_list is None else go_map(device_list),
        "UpdateTime": update_time_s,
    }
    return hashlib.sha256(go_json(body).encode()).hexdigest()
