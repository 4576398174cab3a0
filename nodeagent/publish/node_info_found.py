"""What a node-info object that was found has in common with the one that is wanted. Pure."""

from collections.abc import Mapping
from typing import Any

from nodeagent.publish.managed_fields import names_below
from nodeagent.publish.other_writer import OURS
from nodeagent.render.node_info import INFO_KEY, Owner


def same_object(found: Mapping[str, object], wanted: Mapping[str, Any]) -> bool:
    """The object that was found is the wanted one, the time of its writing apart."""
    metadata, data = found.get("metadata"), found.get("data")
    if not isinstance(metadata, dict) or not isinstance(data, dict):
        return False
    pairs = (
        (data.get(INFO_KEY), wanted["data"][INFO_KEY]),
        (metadata.get("labels"), wanted["metadata"]["labels"]),
        (metadata.get("ownerReferences") or [], wanted["metadata"].get("ownerReferences", [])),
    )
    return all(there == here for there, here in pairs)


def owner_set_by_us(obj: Mapping[str, object]) -> Owner | None:
    """The DaemonSet that nodeagent put on an object, by `managedFields`: one that another program put there is not
    kept."""
    metadata = obj.get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(references, list):
        return None
    ours = names_below(metadata, OURS, "f:metadata", "f:ownerReferences")
    for each in references:
        if isinstance(each, dict) and each.get("kind") == "DaemonSet" and f'k:{{"uid":"{each.get("uid")}"}}' in ours:
            return Owner(str(each.get("name")), str(each.get("uid")))
    return None
