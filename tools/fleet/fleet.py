"""Simulate a fleet of nodes against a real API server, and print what it asks of the server.

Real are the publishers (book, renderer, contract check, Kubernetes target), the client, TLS, RBAC, etcd. Pretended
are the chips. There are no watches and no driver: only what a daemon writes.

examples:
  python tools/fleet/fleet.py                          100, 1000 and 5000 nodes, about 5 minutes
  python tools/fleet/fleet.py --quick --nodes 50       one size, under a minute
  python tools/fleet/fleet.py --nodes 2000 --storm 0   without the storm
  python tools/fleet/fleet.py --output json > fleet.json

exit codes: 0 every object in the cluster is right, 1 some are not, 2 there is no control plane or it failed
"""

import argparse
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster.build import NoControlPlane, build, given

from fleet.fleet_of_nodes import LANES, Fleet, NotSettled, real_nodes
from fleet.report import as_json, as_text
from fleet.scenarios import Grown, Rest, Restart, Scene, Storm, grow, rest, restart, storm
from fleet.server import Server
from fleet.traffic import Traffic
from nodeagent.cluster.client import ApiClient
from nodeagent.publish.book import BookParameters

Result = Grown | Rest | Storm | Restart


@dataclass(frozen=True, slots=True)
class Lengths:
    """Durations in seconds. each: transitions of a node in the storm."""

    refresh_s: float
    rest_s: float
    storm_s: float
    each: int
    outage_s: float


FULL = Lengths(refresh_s=300, rest_s=30, storm_s=60, each=20, outage_s=20)
QUICK = Lengths(refresh_s=20, rest_s=5, storm_s=5, each=5, outage_s=4)
LONG_REST_FROM, LONG_REST_S = 5000, 60
NODES, STORM, RESTART = (100, 1000, 5000), 500, 1000


def arguments() -> argparse.Namespace:
    """The command line."""
    text, _, rest_of_text = (__doc__ or "").partition("\nexamples:")
    parser = argparse.ArgumentParser(
        prog="fleet.py",
        description=text,
        epilog=f"examples:{rest_of_text}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES, metavar="N", help="sizes at which it rests")
    parser.add_argument("--storm", type=int, metavar="N", help=f"nodes in the storm, 0 = none (default {STORM})")
    parser.add_argument(
        "--restart", type=int, metavar="N", help=f"nodes at the restart of the server, 0 = none (default {RESTART})"
    )
    parser.add_argument("--quick", action="store_true", help="short scenarios, a refresh every 20 s instead of 300")
    parser.add_argument("--output", choices=("table", "json"), default="table", help="for people, or for machines")
    parser.add_argument("--folder", type=Path, help="keep the logs of the control plane there")
    given_arguments = parser.parse_args()
    largest = max(given_arguments.nodes)
    if min(given_arguments.nodes) < 1:
        parser.error("--nodes needs at least one node")
    given_arguments.storm = min(STORM, largest) if given_arguments.storm is None else given_arguments.storm
    given_arguments.restart = min(RESTART, largest) if given_arguments.restart is None else given_arguments.restart
    return given_arguments


def plan(sizes: tuple[int, ...], storm_nodes: int, restart_nodes: int) -> list[tuple[int, str]]:
    """The scenarios with their sizes, in an order in which the fleet only grows."""
    steps = [(size, 0, "rest") for size in sizes] + [(storm_nodes, 1, "storm"), (restart_nodes, 2, "restart")]
    return [(size, name) for size, _, name in sorted(steps) if size > 0]


def run(scene: Scene, steps: list[tuple[int, str]], lengths: Lengths) -> Iterator[Result]:
    """Play the scenarios."""
    for size, name in steps:
        if size > len(scene.fleet.nodes):
            yield grow(scene, size)
        if name == "rest":
            long = size >= LONG_REST_FROM and lengths is FULL
            yield rest(scene, LONG_REST_S if long else lengths.rest_s, lengths.refresh_s)
        elif name == "storm":
            yield storm(scene, lengths.storm_s, lengths.each)
        else:
            yield restart(scene, lengths.outage_s)


def progress() -> Callable[[str], None]:
    """Shows one changing line on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda _text: None
    return lambda text: print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main() -> int:
    """Run; returns the exit code."""
    words = arguments()
    lengths = QUICK if words.quick else FULL
    logging.getLogger("nodeagent").setLevel(logging.CRITICAL)  # thousands of nodes say the same when the server is away
    say = progress()
    results: list[Result] = []
    try:
        say("control plane")
        if given() is None:
            build()
        with tempfile.TemporaryDirectory() as temporary, Server.running(words.folder or Path(temporary)) as server:
            traffic = Traffic()
            clients = [ApiClient(str(server.kubeconfig), traffic) for _ in range(LANES)]
            parameters = BookParameters(refresh_ms=int(lengths.refresh_s * 1000))
            fleet = Fleet(real_nodes(clients, parameters, traffic), lengths.refresh_s)
            try:
                steps = plan(tuple(words.nodes), words.storm, words.restart)
                for result in run(Scene(fleet, traffic, server, say), steps, lengths):
                    results.append(result)
                    say("")
                    if words.output == "table":
                        print(as_text(result), flush=True)
            finally:
                fleet.close()
                for client in clients:
                    client.close()
    except KeyboardInterrupt:
        say("")
        return 130
    except (NoControlPlane, NotSettled, AssertionError) as error:
        say("")
        print(f"fleet.py: {error}", file=sys.stderr)
        return 2
    if words.output == "json":
        print(as_json(results))
    return 1 if any(isinstance(r, Storm | Restart) and r.wrong for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
