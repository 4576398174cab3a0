"""What the target held before we wrote anything, as far as the next run of a daemon goes on from it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from nodeagent.core.errors import ReadBackError
from nodeagent.core.instant import Instant
from nodeagent.core.observation import CarriedOver
from nodeagent.render.reading import parse_device_info, published_update_time


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What the target held before we wrote anything.

    data: the object's texts as they are, None when there was no object. problem: why it is not acceptable, empty
    when it is or there is none. carried: its faults. update_time_s: its `UpdateTime`, 0 when there is none.
    """

    carried: CarriedOver
    update_time_s: int
    data: Mapping[str, object] | None
    problem: str


def judge_object(obj: Mapping[str, object] | None, at: Instant) -> ReadBack:
    """Read an object, None = there is none. An object that ClusterD would not take is no error: it has a problem.

    at: the moment it was read.
    """
    if obj is None:
        return ReadBack(CarriedOver((), at), 0, None, "")
    found = obj.get("data")
    data: Mapping[str, object] = found if isinstance(found, dict) else {}
    update_time_s = published_update_time(data)
    try:
        faults = parse_device_info(data).carried()
    except ReadBackError as error:
        return ReadBack(CarriedOver((), at), update_time_s, data, error.sentence)
    return ReadBack(CarriedOver(faults, at), update_time_s, data, "")
