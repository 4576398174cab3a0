"""The Event object, in the form that a real API server took (its validation of core/v1 Events)."""

from nodeagent.core.instant import Instant
from nodeagent.core.telemetry import EventReason
from nodeagent.publish.event_book import Letter
from nodeagent.publish.event_object import event_object

LETTER = Letter(
    7,
    EventReason.FAULT_OCCURRED,
    True,
    "chip 3: 80E18005",
    count=2,
    first=Instant(1, 1_760_000_000_250),
    last=Instant(2, 1_760_000_060_999),
)


def test_the_whole_object() -> None:
    assert event_object(LETTER, "worker-1", "kube-system", "0badcafe") == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "worker-1.0badcafe000007", "namespace": "kube-system"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": "worker-1"},
        "type": "Warning",
        "reason": "Occur",
        "action": "Occur",
        "message": "chip 3: 80E18005",
        "count": 2,
        "eventTime": "2025-10-09T08:53:20.250000Z",
        "firstTimestamp": "2025-10-09T08:53:20Z",
        "lastTimestamp": "2025-10-09T08:54:20Z",
        "source": {"component": "nodeagent", "host": "worker-1"},
        "reportingComponent": "nodeagent",
        "reportingInstance": "worker-1",
    }


def test_a_long_node_name_stays_within_the_limits_of_names_and_instances() -> None:
    obj = event_object(LETTER, "n" * 199 + "." + "m" * 53, "default", "0badcafe")
    metadata = obj["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["name"] == "n" * 199 + ".0badcafe000007", "an empty part between two dots is no DNS name"
    assert obj["reportingInstance"] == "n" * 128


def test_reasons_are_camel_case_and_short_enough_for_the_api() -> None:
    assert all(reason.value.isalpha() and reason.value[0].isupper() for reason in EventReason)
    assert max(len(reason.value) for reason in EventReason) <= 128
