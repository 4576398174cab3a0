"""The difference between a live node and its marks, as a JSON merge patch."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.core.errors import SettingsError
from nodeagent.core.model import ChipId, Family, Product, SuperPod
from nodeagent.core.node_facts import ChipFacts, NodeFacts
from nodeagent.render.node_object import ANNOTATIONS, LABELS, NodeMarks, node_marks, parse_skip, patch_of

FOREIGN = ("kubernetes.io/hostname", "servertype2", "ResetInfo", "product-serial-number")
NAMES = st.sampled_from([*LABELS, *ANNOTATIONS, *FOREIGN])
VALUES = st.sampled_from(["", "0", "A3", "npu-36", "Ascend910B-20", "{}"])
MAPPINGS = st.dictionaries(NAMES, VALUES)
CHIPS = st.builds(
    ChipFacts,
    st.integers(0, 63).map(lambda i: ChipId(i, i, i, 0)),
    st.none() | st.integers(1, 64),
    st.none() | st.integers(1, 256),
    st.none() | st.sampled_from(["10.0.0.1", "2001:db8::1"]),
    st.none() | st.integers(0, 0xFFFFFFFF),
    st.none() | st.sampled_from(["Atlas 300I Duo", "Atlas 300V"]),
)
PODS = st.builds(SuperPod, st.integers(-2, 9), st.integers(-2, 47), st.integers(-2, 9), st.integers(0, 3))
PRODUCTS = st.builds(
    Product,
    st.sampled_from(Family),
    st.sampled_from(["910B3", "310P3", "Ascend950"]),
    st.sampled_from([0, 0x1A, 0x28, 0xB0]),
    st.sampled_from([0, 0x68, 0x6C]),
    st.sampled_from(["", "25.2.0", "25.2.0 beta"]),
    st.just("v1"),
    PODS,
)
FACTS = st.builds(NodeFacts, PRODUCTS, st.lists(CHIPS, max_size=4, unique_by=lambda c: c.chip.logic_id).map(tuple))


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396, as an API server applies it."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def applied(
    patch: Mapping[str, object] | None, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    live = {"metadata": {"name": "worker-1", "labels": labels, "annotations": annotations}, "spec": {"taints": []}}
    after = merged(deepcopy(live), patch or {})
    assert after["spec"] == live["spec"]
    assert after["metadata"]["name"] == "worker-1"
    return after["metadata"]["labels"], after["metadata"]["annotations"]


@given(facts=FACTS, labels=MAPPINGS, annotations=MAPPINGS, skip=st.sets(NAMES, max_size=4))
def test_the_patched_node_has_its_marks_and_everything_else_as_before(
    facts: NodeFacts, labels: dict[str, str], annotations: dict[str, str], skip: set[str]
) -> None:
    marks = node_marks(facts, annotations)
    patch = patch_of(marks, labels, annotations, skip)
    new_labels, new_annotations = applied(patch, labels, annotations)
    kept = {name for name in marks.only_if_absent if name in labels}
    wanted = {name: value for name, value in marks.labels.items() if name not in skip | kept}
    assert new_labels == labels | wanted
    assert new_annotations == annotations | {n: v for n, v in marks.annotations.items() if n not in skip}
    assert patch_of(node_marks(facts, new_annotations), new_labels, new_annotations, skip) is None
    if patch is not None:
        parts: Any = patch["metadata"]
        assert set(patch) == {"metadata"}
        assert set(parts) <= {"labels", "annotations"}
        assert all(part and None not in part.values() for part in parts.values())
        assert not skip & {name for part in parts.values() for name in part}
        assert all(labels.get(name) != value for name, value in parts.get("labels", {}).items())
        assert all(annotations.get(name) != value for name, value in parts.get("annotations", {}).items())


@given(facts=FACTS)
def test_only_declared_names_are_ever_written(facts: NodeFacts) -> None:
    marks = node_marks(facts)
    assert set(marks.labels) | set(marks.left_out) <= set(LABELS)
    assert set(marks.annotations) <= set(ANNOTATIONS)


MARKS = NodeMarks(
    {"servertype": "Ascend910B-20", "accelerator": "huawei-Ascend910"}, {"serverType": ""}, frozenset({"servertype"})
)


class TestPatch:
    def test_a_bare_node_gets_everything(self) -> None:
        assert patch_of(MARKS, {}, {}) == {
            "metadata": {
                "labels": {"servertype": "Ascend910B-20", "accelerator": "huawei-Ascend910"},
                "annotations": {"serverType": ""},
            }
        }

    def test_only_what_differs_is_sent(self) -> None:
        live = {"servertype": "Ascend910B-20", "accelerator": "huawei-npu"}
        assert patch_of(MARKS, live, {"serverType": ""}) == {
            "metadata": {"labels": {"accelerator": "huawei-Ascend910"}}
        }

    def test_a_servertype_of_somebody_else_stays(self) -> None:
        live = {"servertype": "Ascend910B-24", "accelerator": "huawei-Ascend910"}
        assert patch_of(MARKS, live, {"serverType": ""}) is None
        assert patch_of(NodeMarks(MARKS.labels, {}), live, {}) == {
            "metadata": {"labels": {"servertype": "Ascend910B-20"}}
        }

    def test_an_empty_value_is_not_the_same_as_none(self) -> None:
        assert patch_of(MARKS, MARKS.labels, {}) == {"metadata": {"annotations": {"serverType": ""}}}

    def test_skipped_names_are_not_written_in_either_place(self) -> None:
        assert patch_of(MARKS, {}, {}, {"servertype", "serverType"}) == {
            "metadata": {"labels": {"accelerator": "huawei-Ascend910"}}
        }


class TestSkip:
    def test_names_with_commas_and_blanks(self) -> None:
        assert parse_skip(" servertype,huawei.com/driver.version ,, cardType") == {
            "servertype",
            "huawei.com/driver.version",
            "cardType",
        }
        assert parse_skip("") == frozenset()

    def test_a_name_that_is_never_written_is_a_mistake(self) -> None:
        with pytest.raises(SettingsError, match=r"node_object\.skip names 'serverTyp', which nodeagent never writes"):
            parse_skip("servertype,serverTyp")
