"""The renderer against the exact texts and digests of the sheet (device-info 5.3, 14)."""

from collections.abc import Mapping

import pytest
from contract.data.device_info.cases import UPDATE_TIME_S, VIEWS, golden

from nodeagent.render.device_info import config_map, render_device_info
from nodeagent.render.gojson import check_code


@pytest.mark.parametrize("case", VIEWS)
def test_worked_example_is_reproduced_to_the_byte(case: str) -> None:
    data = render_device_info(VIEWS[case](), UPDATE_TIME_S.get(case, 1760000000))
    assert data.pop("Description").strip()
    assert data == golden(case)


def test_complete_object_has_one_label_and_no_other_metadata() -> None:
    data = render_device_info(VIEWS["A1"](), 1760000000)
    assert config_map("worker-1", data) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "mindx-dl-deviceinfo-worker-1",
            "namespace": "kube-system",
            "labels": {"mx-consumer-cim": "true"},
        },
        "data": data,
    }


def _names(count: int) -> str:
    return ",".join(f"Ascend910-{number}" for number in range(count))


@pytest.mark.parametrize(
    ("device_list", "update_time_s", "digest"),
    [
        (None, 0, "aaa60c794e2dbec298a2f3c18ea64dea9a1fd2ccdb0cc577b8dfe2c3c5966965"),
        ({}, 0, "de66ee6ed1e7a46ba95255b4ea0de48d161dc047b75109471eb7b85d1ea230aa"),
        (
            {
                "huawei.com/Ascend910-Unhealthy": "",
                "huawei.com/Ascend910": _names(8),
                "huawei.com/Ascend910-NetworkUnhealthy": "",
            },
            1657527526,
            "6b8de396fd9945be231d24720ca66ed950baf0a5972717f335aad7571cb6457a",
        ),
        (
            {"huawei.com/Ascend910": _names(8), "huawei.com/Ascend910-NetworkUnhealthy": ""},
            1720679215,
            "0c1aaed0a363a68edfa245b38dad622e9ac6e3a73751217ca7b6198fa6b14a9e",
        ),
        (
            {"huawei.com/Ascend910": _names(16), "huawei.com/Ascend910-NetworkUnhealthy": ""},
            1724134627,
            "a9757e4c1d9bc31aaf4807349f562d371386b798678587baf221259bb8066692",
        ),
        ({"k": "<a>&b"}, 1, "a9cddbeef70a71c285bfd8e4e40e2bfb0c2ddb1bc92ca5ce59a85a23e21b6b7b"),
    ],
)
def test_digest_vectors(device_list: Mapping[str, str] | None, update_time_s: int, digest: str) -> None:
    assert check_code(device_list, update_time_s) == digest
