"""The order and the exact words of levels, and which plane a code belongs to."""

import pytest

from nodeagent.core.levels import Level, Plane, Severity, plane_of

MILD_TO_SERIOUS = [
    "NormalNPU",
    "NotHandleFault",
    "SubHealthFault",
    "RestartRequest",
    "RestartBusiness",
    "FreeRestartNPU",
    "RestartNPU",
    "PreSeparateNPU",
    "SeparateNPU",
    "ManuallySeparateNPU",
]


def test_order_is_that_of_the_consumers() -> None:
    """chip-faults 3.1 and R22: PreSeparateNPU stays above RestartNPU."""
    assert [level.text for level in sorted(Level)] == MILD_TO_SERIOUS
    assert max(Level.PRE_SEPARATE, Level.RESTART_NPU) is Level.PRE_SEPARATE


@pytest.mark.parametrize("text", MILD_TO_SERIOUS)
def test_words_parse_back(text: str) -> None:
    assert Level.parse(text).text == text


@pytest.mark.parametrize("text", ["separatenpu", "SeparateNPU ", "Separate", "", "8"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a fault level"):
        Level.parse(text)


def test_severities_are_the_numbers_of_the_driver() -> None:
    assert [Severity(number).name for number in range(4)] == ["NOTICE", "MINOR", "MAJOR", "CRITICAL"]


@pytest.mark.parametrize(
    ("code", "plane"),
    [
        (0x81078603, Plane.NETWORK),
        (0x110001024, Plane.NETWORK),
        (0x81B18603, Plane.HYPERPLANE),
        (0x020001002, Plane.HYPERPLANE),
        (0x200001002, Plane.CHIP),
        (0x80E01801, Plane.CHIP),
    ],
)
def test_planes(code: int, plane: Plane) -> None:
    assert plane_of(code) is plane
