"""What hccn_tool prints, read by the rules of native-abi 11.5; anything else is an error, never a state."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.drivers.hccn_text import Port, ToolError, read_link, read_port_enabled, read_ports

TABLE = """\
+---------+--------+-------+----------+-------------+------------+
| UdieID  | PortID | Speed | PortType | Link Status | Media Type |
+---------+--------+-------+----------+-------------+------------+
| 0       | 0      | 400G  | ETH      | UP          | optical    |
| 0       | 1      | 400G  | ETH      | DOWN        | optical    |
| 0       | 4      | 200G  | UB       | DOWN        | copper     |
| 1       | 5      | 200G  | UB       | down        | copper     |
| 1       | 6      | -     | UB       | -           |            |
+---------+--------+-------+----------+-------------+------------+
+---------+--------+
| 7       | 7      | x | ETH | DOWN |
"""


class TestLink:
    @pytest.mark.parametrize(
        ("text", "up"),
        [
            ("link status: UP", True),
            ("link status: DOWN\n", False),
            ("\nlink  status:  UP \r\n\n", True),
        ],
    )
    def test_samples(self, text: str, up: bool) -> None:
        assert read_link(text) is up

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "link status:",
            "link status: up",
            "link status: UNKNOWN",
            "link status: DOWN now",
            "link status:\nDOWN",
            "Link status: DOWN",
            "hccn_tool is busy, please try again",
            "the device DOWN",
        ],
    )
    def test_anything_else_is_no_state(self, text: str) -> None:
        with pytest.raises(ToolError, match="link status"):
            read_link(text)

    @given(st.text())
    def test_any_text_is_a_state_or_one_kind_of_error(self, text: str) -> None:
        for read in (read_link, read_ports, read_port_enabled):
            with contextlib.suppress(ToolError):
                read(text)


class TestPorts:
    def test_first_table_only_and_rows_with_a_state_only(self) -> None:
        assert read_ports(TABLE) == [
            Port(0, 0, "ETH", False),
            Port(0, 1, "ETH", True),
            Port(0, 4, "UB", True),
            Port(1, 5, "UB", False),
        ], "only the exact text DOWN is down"

    def test_a_table_without_ports_is_an_answer(self) -> None:
        assert read_ports("+-----+\n| UdieID | PortID | Speed | PortType | Link Status |\n+-----+\n+-----+\n") == []

    @pytest.mark.parametrize("text", ["", "no such device", "| 0 | 1 | 400G | ETH | DOWN | x |"])
    def test_a_text_without_a_table_is_none(self, text: str) -> None:
        with pytest.raises(ToolError, match="port table"):
            read_ports(text)

    @pytest.mark.parametrize(
        "row",
        [
            "| 0 | 1 | DOWN |",
            "| 0 | 1 | 400G |  | DOWN | x |",
            "| 0 | 1 | up | ETH |  | x |",
            "| a | 1 | 400G | ETH | DOWN | x |",
            "| 0 |  | 400G | ETH | UP | x |",
        ],
    )
    def test_a_malformed_row_spoils_the_whole(self, row: str) -> None:
        with pytest.raises(ToolError, match="port row"):
            read_ports(f"+-+\n| UdieID |\n+-+\n| 0 | 0 | 400G | ETH | DOWN | x |\n{row}\n+-+\n")


class TestPortEnabled:
    @pytest.mark.parametrize(("text", "enabled"), [("port_enable: on", True), ("a: b\n port_enable : off\n", False)])
    def test_samples(self, text: str, enabled: bool) -> None:
        assert read_port_enabled(text) is enabled

    @pytest.mark.parametrize("text", ["", "port: on", "port_enable on"])
    def test_a_text_that_does_not_say_is_an_error(self, text: str) -> None:
        with pytest.raises(ToolError):
            read_port_enabled(text)
