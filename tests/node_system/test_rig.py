"""The node itself."""

from kit.node import NODE, RealNode


def test_the_node_is_ready(node: RealNode) -> None:
    print(node.cluster.kubectl("get", "nodes", "-o", "wide").stdout)
    assert NODE in node.cluster.kubectl("get", "nodes").stdout
