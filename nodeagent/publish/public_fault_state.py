"""How telling the faults of one storage client stands, as JSON for people and tools. Pure."""

from nodeagent.core.instant import Instant
from nodeagent.core.storage import StorageVerdict
from nodeagent.policy.public_fault import SenderPlan
from nodeagent.render.public_fault import Message

_WORDS = {True: "present", False: "absent", None: "unknown"}


def sender_json(
    verdict: StorageVerdict | None,
    plan: SenderPlan | None,
    last: Message | None,
    last_ms: int,
    problem: str,
    now: Instant,
) -> dict[str, object]:
    """wanted: what holds. believed: what ClusterD has. All times are Unix milliseconds, None = none.

    plan None: nobody is told, or our last object was not read yet. last: the last message that was taken, at last_ms.
    problem: why the last attempt failed, empty = it did not.
    """
    faults: dict[str, object] = {}
    for fault, present in ({} if verdict is None else verdict.present).items():
        track = None if plan is None else plan.tracks[fault]
        faults[fault.value] = {
            "code": fault.code,
            "wanted": _WORDS[present if track is None else track.wanted],
            "believed": _WORDS[None if track is None else track.believed],
            "occurred_ms": (track.occurred_wall_ms or None) if track is not None else None,
        }
    next_ms = None if plan is None else plan.next_ms()
    return {
        "faults": faults,
        "waiting": plan is not None and plan.waiting,
        "failures": 0 if plan is None else plan.failures,
        "last_message": None if last is None else {"id": last.id, "at_ms": last_ms},
        "next_send_ms": None if next_ms is None else now.wall_ms + max(0, next_ms - now.mono_ms),
        "problem": problem,
    }
