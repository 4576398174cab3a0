"""Labels and annotations of every product, to the byte (device-info 10, grace-tolerance 16, pingmesh 3)."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from nodeagent.core.model import ChipId, Family, Product, SuperPod
from nodeagent.core.node_facts import ChipFacts, NodeFacts
from nodeagent.render.node_object import node_marks


def node(product: Product, *chips: ChipFacts) -> NodeFacts:
    return NodeFacts(product, chips)


def whole(logic_id: int, physical_id: int | None = None, **fields: object) -> ChipFacts:
    physical = logic_id if physical_id is None else physical_id
    return ChipFacts(ChipId(logic_id, physical, logic_id, 0), **fields)  # type: ignore[arg-type]


A2 = node(
    Product(Family.A2, "910B3", board_id=0x30, driver_version="25.2.0"),
    *(whole(i, aicore_count=20, memory_gib=64, address=f"10.0.0.{i + 1}") for i in range(2)),
)
A3 = node(
    Product(Family.A3, "910_9391", board_id=0xB0, driver_version="25.2.0", super_pod=SuperPod(3, 1)),
    # The first two dies of server 1 in the table of pingmesh 5.
    whole(0, aicore_count=24, memory_gib=64, address="10.0.0.1", super_device_id=4194304),
    whole(1, aicore_count=24, memory_gib=64, address="10.0.0.2", super_device_id=4259841),
)
A5 = node(
    Product(Family.A5, "Ascend950", mainboard_id=0x03, driver_version="25.5.0", super_pod=SuperPod(3, 7, 4, 1)),
    whole(0, 8, aicore_count=36, memory_gib=128, super_device_id=29360128),
)
A310P = node(
    Product(Family.A310P, "310P3", driver_version="24.1.0"),
    whole(0, aicore_count=8, product_type="Atlas 300V"),
)
DUO = node(A310P.product, *(whole(i, aicore_count=8, product_type="Atlas 300I Duo") for i in range(2)))
A310 = node(Product(Family.A310, "310", driver_version="24.1.0"), whole(0, aicore_count=2))
A910 = node(
    Product(Family.A910, "910A", driver_version="24.1.0"),
    whole(0, aicore_count=32, memory_gib=32, address="192.168.100.1"),
)

GOLDEN: dict[str, tuple[NodeFacts, Mapping[str, str], Mapping[str, str]]] = {
    "A2": (
        A2,
        {
            "node.kubernetes.io/npu.chip.name": "910B3",
            "servertype": "Ascend910B-20",
            "huawei.com/driver.version": "25.2.0",
            "mind-cluster/npu-chip-memory": "64G",
            "accelerator": "huawei-Ascend910",
        },
        {
            "baseDeviceInfos": (
                '{"Ascend910-0":{"IP":"10.0.0.1","SuperDeviceID":0},"Ascend910-1":{"IP":"10.0.0.2","SuperDeviceID":0}}'
            ),
            "superPodID": "-2",
            "serverIndex": "-2",
            "serverType": "",
        },
    ),
    "A3": (
        A3,
        {
            "node.kubernetes.io/npu.chip.name": "910_9391",
            "servertype": "Ascend910A3-24",
            "huawei.com/driver.version": "25.2.0",
            "mind-cluster/npu-chip-memory": "64G",
            "accelerator": "huawei-Ascend910",
            "huawei.com/topotree.superpodid": "3",
        },
        {
            "baseDeviceInfos": (
                '{"Ascend910-0":{"IP":"10.0.0.1","SuperDeviceID":4194304},'
                '"Ascend910-1":{"IP":"10.0.0.2","SuperDeviceID":4259841}}'
            ),
            "superPodID": "3",
            "serverIndex": "1",
            "serverType": "A3",
        },
    ),
    "950 in a 1D pod": (
        A5,
        {
            "node.kubernetes.io/npu.chip.name": "Ascend950",
            "servertype": "npu-36",
            "huawei.com/driver.version": "25.5.0",
            "mind-cluster/npu-chip-memory": "128G",
            "accelerator": "huawei-npu",
            "huawei.com/topotree.superpodid": "3",
            "huawei.com/topotree.rackid": "4",
            "huawei.com/topotree.serverid": "7",
        },
        {
            "baseDeviceInfos": '{"npu-8":{"DeviceID":0,"IP":"","SuperDeviceID":29360128}}',
            "superPodID": "3",
            "serverIndex": "7",
            "serverType": "npu",
            "rackID": "4",
        },
    ),
    "310P": (
        A310P,
        {
            "node.kubernetes.io/npu.chip.name": "310P3",
            "servertype": "Ascend310P-8",
            "huawei.com/driver.version": "24.1.0",
            "accelerator": "huawei-Ascend310P",
        },
        {
            "baseDeviceInfos": '{"Ascend310P-0":{"IP":"","SuperDeviceID":0}}',
            "superPodID": "-2",
            "serverIndex": "-2",
            "serverType": "",
        },
    ),
    "310P Duo": (
        DUO,
        {
            "node.kubernetes.io/npu.chip.name": "310P3",
            "servertype": "Ascend310P-8",
            "huawei.com/driver.version": "24.1.0",
            "accelerator": "huawei-Ascend310P",
            "infer-card-type": "card-300i-duo",
        },
        {
            "baseDeviceInfos": (
                '{"Ascend310P-0":{"IP":"","SuperDeviceID":0},"Ascend310P-1":{"IP":"","SuperDeviceID":0}}'
            ),
            "superPodID": "-2",
            "serverIndex": "-2",
            "serverType": "",
        },
    ),
    "310": (
        A310,
        {
            "node.kubernetes.io/npu.chip.name": "310",
            "servertype": "Ascend310-2",
            "huawei.com/driver.version": "24.1.0",
            "accelerator": "huawei-Ascend310",
        },
        {
            "baseDeviceInfos": '{"Ascend310-0":{"IP":"","SuperDeviceID":0}}',
            "superPodID": "-2",
            "serverIndex": "-2",
            "serverType": "",
        },
    ),
    "910A": (
        A910,
        {
            "node.kubernetes.io/npu.chip.name": "910A",
            "servertype": "Ascend910-32",
            "huawei.com/driver.version": "24.1.0",
            "mind-cluster/npu-chip-memory": "32G",
            "accelerator": "huawei-Ascend910",
        },
        {
            "baseDeviceInfos": '{"Ascend910-0":{"IP":"192.168.100.1","SuperDeviceID":0}}',
            "superPodID": "-2",
            "serverIndex": "-2",
            "serverType": "",
        },
    ),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_a_product_has_exactly_these_marks(case: str) -> None:
    facts, labels, annotations = GOLDEN[case]
    marks = node_marks(facts)
    assert marks.labels == labels
    assert marks.annotations == annotations
    assert marks.left_out == ()


@pytest.mark.parametrize("case", GOLDEN)
def test_only_a_950_insists_on_its_servertype(case: str) -> None:
    facts = GOLDEN[case][0]
    expected = frozenset() if facts.product.family is Family.A5 else {"servertype"}
    assert node_marks(facts).only_if_absent == expected


def changed(facts: NodeFacts, **product: object) -> NodeFacts:
    return replace(facts, product=replace(facts.product, **product))  # type: ignore[arg-type]


class TestConditions:
    @pytest.mark.parametrize(
        ("board_id", "label"), [(0x28, "card-910b-infer"), (0x29, "card-910b-infer"), (0x69, None)]
    )
    def test_accelerator_type_of_the_a2_inference_cards(self, board_id: int, label: str | None) -> None:
        assert node_marks(changed(A2, board_id=board_id)).labels.get("accelerator-type") == label

    def test_accelerator_type_of_no_other_product(self) -> None:
        assert "accelerator-type" not in node_marks(changed(A910, board_id=0x28)).labels

    @pytest.mark.parametrize(
        ("board_id", "mainboard_id", "card"),
        [
            (0x1A, 0x68, "300I-Atlas350"),
            (0x1B, 0x6C, "300I-Atlas350-4p"),
            (0x1C, 0x68, "300I-Atlas350"),
            (0x1A, 0x6B, None),
            (0x00, 0x68, None),
        ],
    )
    def test_card_type_of_the_atlas_350(self, board_id: int, mainboard_id: int, card: str | None) -> None:
        """native-abi 5.5"""
        facts = changed(A5, board_id=board_id, mainboard_id=mainboard_id)
        assert node_marks(facts).annotations.get("cardType") == card
        assert "cardType" not in node_marks(changed(A2, board_id=board_id, mainboard_id=mainboard_id)).annotations

    def test_a_310b_has_no_accelerator(self) -> None:
        labels = node_marks(changed(A310, family=Family.A310B, chip_name="310B4")).labels
        assert "accelerator" not in labels
        assert labels["servertype"] == "Ascend310B-2"

    @pytest.mark.parametrize("pod_type", [0, 3, 4])
    def test_a_950_outside_of_1d_and_2d_pods_has_no_rack(self, pod_type: int) -> None:
        marks = node_marks(changed(A5, super_pod=SuperPod(3, 7, 4, pod_type)))
        assert "huawei.com/topotree.rackid" not in marks.labels
        assert "rackID" not in marks.annotations
        assert marks.labels["huawei.com/topotree.serverid"] == "7"

    def test_a_2d_pod_has_a_rack(self) -> None:
        assert node_marks(changed(A5, super_pod=SuperPod(3, 7, 4, 2))).annotations["rackID"] == "4"

    @pytest.mark.parametrize("number", [-1, -2])
    def test_numbers_that_are_not_known_are_no_labels_but_annotations(self, number: int) -> None:
        pod = SuperPod(number, number, number, 1)
        for facts in (changed(A3, super_pod=pod), changed(A5, super_pod=pod)):
            marks = node_marks(facts)
            assert not [name for name in marks.labels if "topotree" in name]
            assert (marks.annotations["superPodID"], marks.annotations["serverIndex"]) == (str(number), str(number))
        assert node_marks(changed(A5, super_pod=pod)).annotations["rackID"] == str(number)

    def test_an_a3_has_its_super_pod_as_label_and_neither_rack_nor_server(self) -> None:
        labels = node_marks(changed(A3, super_pod=SuperPod(0, 5, 4, 1))).labels
        assert {name: labels[name] for name in labels if "topotree" in name} == {"huawei.com/topotree.superpodid": "0"}

    def test_one_card_that_is_no_duo_or_does_not_tell_is_enough(self) -> None:
        for other in ("Atlas 300V", None):
            mixed = replace(DUO, chips=(DUO.chips[0], replace(DUO.chips[1], product_type=other)))
            assert "infer-card-type" not in node_marks(mixed).labels

    def test_chips_are_sorted_by_the_bytes_of_their_names(self) -> None:
        facts = replace(A2, chips=tuple(whole(i, physical) for i, physical in enumerate((10, 2, 1))))
        text = node_marks(facts).annotations["baseDeviceInfos"]
        assert text.index('"Ascend910-1"') < text.index('"Ascend910-10"') < text.index('"Ascend910-2"')

    def test_a_chip_that_is_cut_is_there_by_its_vnpus(self) -> None:
        cut = replace(A310P.chips[0], vnpus=("Ascend310P-2c-101-0", "Ascend310P-2c-100-0"))
        assert node_marks(replace(A310P, chips=(cut, whole(1)))).annotations["baseDeviceInfos"] == (
            '{"Ascend310P-1":{"IP":"","SuperDeviceID":0},'
            '"Ascend310P-2c-100-0":{"IP":"","SuperDeviceID":0},"Ascend310P-2c-101-0":{"IP":"","SuperDeviceID":0}}'
        )


class TestUnknown:
    def test_facts_that_are_not_known_are_left_out_of_the_labels(self) -> None:
        bare = node(Product(Family.A2, "910B3"), whole(0))
        assert node_marks(bare).labels == {
            "node.kubernetes.io/npu.chip.name": "910B3",
            "accelerator": "huawei-Ascend910",
        }

    def test_the_first_chip_that_tells_speaks_for_the_node(self) -> None:
        facts = replace(A2, chips=(whole(0), A2.chips[1]))
        assert node_marks(facts).labels["servertype"] == "Ascend910B-20"
        assert node_marks(facts).labels["mind-cluster/npu-chip-memory"] == "64G"

    def test_what_the_driver_does_not_tell_stays_as_it_was_published(self) -> None:
        live = {"baseDeviceInfos": node_marks(A3).annotations["baseDeviceInfos"]}
        silent = replace(A3, chips=(replace(A3.chips[0], address=None, super_device_id=None), A3.chips[1]))
        assert node_marks(silent, live).annotations["baseDeviceInfos"] == live["baseDeviceInfos"]
        assert '"Ascend910-0":{"IP":"","SuperDeviceID":0}' in node_marks(silent).annotations["baseDeviceInfos"]
        moved = replace(A3, chips=(replace(A3.chips[0], address="10.9.9.9"), A3.chips[1]))
        assert '"IP":"10.9.9.9"' in node_marks(moved, live).annotations["baseDeviceInfos"]

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[1]",
            "null",
            '{"Ascend910-0":7}',
            '{"Ascend910-0":{"IP":7,"SuperDeviceID":"7"}}',
            '{"Ascend910-0":{"IP":"nowhere","SuperDeviceID":true}}',
            '{"Ascend910-0":{"IP":"10.0.0.1.2","SuperDeviceID":4294967296}}',
            "[" * 100_000,
        ],
    )
    def test_an_annotation_that_makes_no_sense_tells_nothing(self, text: str) -> None:
        bare = node(Product(Family.A3, "910_9391"), whole(0))
        assert node_marks(bare, {"baseDeviceInfos": text}).annotations["baseDeviceInfos"] == (
            '{"Ascend910-0":{"IP":"","SuperDeviceID":0}}'
        )

    def test_a_product_without_addresses_inherits_none(self) -> None:
        live = {"baseDeviceInfos": '{"Ascend310P-0":{"IP":"10.0.0.1","SuperDeviceID":9}}'}
        assert node_marks(A310P, live).annotations["baseDeviceInfos"] == '{"Ascend310P-0":{"IP":"","SuperDeviceID":0}}'


class TestValues:
    """W-43: the pattern is anchored."""

    @pytest.mark.parametrize(
        "version",
        ["25.2.0 beta", "25.2.0\n", "-25", "25.", "v" * 64, "25.2\u00e9", "\u0662\u0665", "a/b", "{}"],
    )
    def test_a_value_that_the_api_server_refuses_is_left_out_and_named(self, version: str) -> None:
        marks = node_marks(changed(A2, driver_version=version))
        assert "huawei.com/driver.version" not in marks.labels
        assert marks.left_out == ("huawei.com/driver.version",)
        assert marks.labels["accelerator"] == "huawei-Ascend910"

    @pytest.mark.parametrize("version", ["v" * 63, "2", "25.2-rc_1"])
    def test_a_good_value_is_written(self, version: str) -> None:
        marks = node_marks(changed(A2, driver_version=version))
        assert marks.labels["huawei.com/driver.version"] == version
        assert marks.left_out == ()
