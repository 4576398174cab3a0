"""The protobuf types of ClusterD's public fault service, made at run time (node-faults 13.1, 13.2).

From a table instead of generated code, which would be tied to a version of the compiler and of the library. The
package `google.protobuf` is imported by `wire_types` alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

METHOD = "/PubFault/SendPublicFault"
"""The service has no package (node-faults 13.2)."""

_MESSAGES: Mapping[str, tuple[tuple[int, str, str], ...]] = {
    "PublicFaultRequest": (
        (1, "id", "string"),
        (2, "timestamp", "int64"),
        (3, "version", "string"),
        (4, "resource", "string"),
        (5, "faults", "Fault*"),
    ),
    "Fault": (
        (1, "faultId", "string"),
        (2, "faultType", "string"),
        (3, "faultCode", "string"),
        (4, "faultTime", "int64"),
        (5, "assertion", "string"),
        (6, "faultLocation", "Fault.FaultLocationEntry*"),
        (7, "influence", "PubFaultInfo*"),
        (8, "description", "string"),
    ),
    "Fault.FaultLocationEntry": ((1, "key", "string"), (2, "value", "string")),
    "PubFaultInfo": ((1, "nodeName", "string"), (2, "nodeSN", "string"), (3, "deviceIds", "int32*")),
    "RespStatus": ((1, "code", "int32"), (2, "info", "string")),
}
"""Number, name and type of each field; `*` = repeated. Names of messages do not travel, but those of 13.2 are kept."""


@dataclass(frozen=True, slots=True)
class WireTypes:
    """encode: a message document to bytes. decode: bytes of an answer to code and text; ValueError
    when they are none."""

    encode: Callable[[Mapping[str, Any]], bytes]
    decode: Callable[[bytes], tuple[int, str]]


def wire_types() -> WireTypes:
    """The two directions of the call. Raises ImportError without the package."""
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message, message_factory

    field_type = descriptor_pb2.FieldDescriptorProto
    scalars = {"string": field_type.TYPE_STRING, "int64": field_type.TYPE_INT64, "int32": field_type.TYPE_INT32}
    file = descriptor_pb2.FileDescriptorProto(name="nodeagent/public_fault.proto", syntax="proto3")
    declared: dict[str, Any] = {}
    for name, fields in _MESSAGES.items():
        outer, _, inner = name.rpartition(".")
        made = declared[outer].nested_type.add(name=inner) if outer else file.message_type.add(name=name)
        made.options.map_entry = bool(outer)  # the only nested one is the entry of the map
        declared[name] = made
        for number, field, kind in fields:
            label = field_type.LABEL_REPEATED if kind.endswith("*") else field_type.LABEL_OPTIONAL
            element = kind.rstrip("*")
            if element in scalars:
                made.field.add(name=field, number=number, label=label, type=scalars[element])
            else:
                kinds = {"type": field_type.TYPE_MESSAGE, "type_name": f".{element}"}
                made.field.add(name=field, number=number, label=label, **kinds)
    pool = descriptor_pool.DescriptorPool()  # our own: other programs' types of the same names are none of ours
    pool.Add(file)
    request, answer = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        for name in ("PublicFaultRequest", "RespStatus")
    )

    def encode(document: Mapping[str, Any]) -> bytes:
        encoded: bytes = json_format.ParseDict(dict(document), request()).SerializeToString()
        return encoded

    def decode(data: bytes) -> tuple[int, str]:
        try:
            status = answer.FromString(data)
        except message.DecodeError as error:
            raise ValueError(str(error)) from error
        return status.code, status.info

    return WireTypes(encode, decode)
