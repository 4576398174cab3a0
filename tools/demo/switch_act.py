"""The third act of the demonstration: an A3 node whose LingQu switches break, and whose LingQu library dies."""

import os
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from stage import WAIT_S, Stage, Switches, Unexpected

from nodeagent.mock.client import Injected, injected

DIES = 16
PORT_DOWN = "0x08520003,na"
SWITCH, PORT, NPU = 2, 11, 5
PLANE_SWITCH, PLANE_PORTS = 3, tuple(range(32, 48))
"""A switch chip, and as many of its ports towards L2 as make its plane be down (docs/switches.md)."""

HEALTHY = Switches(0, "", "Healthy")


def switch_act(stage: Stage) -> None:
    """A port towards an NPU, a plane that goes down while nobody listens, and the way back."""
    _opening(stage)
    time.sleep(1.1)
    npu = {"port": PORT, "peer_id": NPU}
    done_ns = time.monotonic_ns()
    since_ns = _first_callback(stage.control.raise_switch_fault(SWITCH, f"{PORT_DOWN},npu", **npu), done_ns)
    stage.say(f"switch {SWITCH}: port {PORT} towards NPU {NPU} goes down")
    _show_until(stage, Switches(1, "Separate", "UnHealthy"), since_ns, "the callback")
    time.sleep(1.1)
    done_ns = time.monotonic_ns()
    since_ns = _first_callback(stage.control.clear_switch_fault(SWITCH, f"{PORT_DOWN},npu", **npu), done_ns)
    stage.say("  the port is up again")
    _show_until(stage, HEALTHY, since_ns, "the callback")
    time.sleep(1.1)

    *first, last = PLANE_PORTS
    since_ns = _ports(stage, "switch_raise", first)
    stage.say(f"switch {PLANE_SWITCH}: {len(first)} ports towards L2 go down, one short of its L1-L2 plane")
    _show_until(stage, Switches(len(first), "NotHandle", "Healthy"), since_ns, "the first callback")
    time.sleep(1.1)

    host = _listening(stage)
    os.kill(host, signal.SIGSEGV)
    killed = time.monotonic()
    stage.say(f"the LingQu host, pid {host}, is killed with -SEGV")
    successor = _listening(stage, gone=host)
    back_ms = (time.monotonic() - killed) * 1000
    time.sleep(1.5)
    stage.expect_nothing_new()
    stage.line(f"  published nothing new: {stage.last.switches}   (pid {successor} listens after {back_ms:.0f} ms)")

    since_ns = _ports(stage, "switch_raise", [last])
    stage.say(f"switch {PLANE_SWITCH}: port {last} goes down too, and with it the plane")
    _show_until(stage, Switches(len(PLANE_PORTS), "Separate", "UnHealthy"), since_ns, "the callback")
    time.sleep(1.1)
    since_ns = _ports(stage, "switch_clear", PLANE_PORTS)
    stage.say("  all its ports are up again")
    _show_until(stage, HEALTHY, since_ns, "the first callback")
    stage.expect({})


def _opening(stage: Stage) -> None:
    while stage.last.switches is None or stage.last.switches.codes is None:
        stage.last = stage.next_state()
    if stage.last.switches != HEALTHY:
        raise Unexpected(f"SwitchInfoCfg: {stage.last.switches}")
    known_ms = (stage.last.seen_ns - stage.started_ns) / 1e6
    print(f"\nThird act: an Atlas 900 A3 SuperPoD with {DIES} dies and 7 LingQu switch chips of 48 ports.")
    print(f"  daemon        pid {stage.daemon.pid}")
    print(f"  LingQu host   pid {_listening(stage)}")
    print(f"Switches known {known_ms:.0f} ms after the daemon was started: {HEALTHY}.\n")
    stage.begin = time.monotonic()


def _listening(stage: Stage, gone: int = 0) -> int:
    """Process id of the LingQu host once its handler gets events. gone: one that does no longer."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        pids = [ring["pid"] for ring in stage.control.state()["switch_rings"]]
        if pids and pids[-1] != gone:
            return int(pids[-1])
        time.sleep(0.01)
    raise Unexpected(f"no LingQu host listens within {WAIT_S:g} s")


def _ports(stage: Stage, do: str, ports: Sequence[int]) -> int:
    """Do it to ports towards L2 at once; the monotonic nanosecond of the first callback.

    A command returns after its callback, for which the library takes up to 300 ms: hence one connection for each.
    """

    def one(port: int) -> list[Injected]:
        with stage.server.control() as control:
            return injected(control.command(do, chip=PLANE_SWITCH, port=port, code=f"{PORT_DOWN},L2"))

    done_ns = time.monotonic_ns()
    with ThreadPoolExecutor(len(ports)) as hands:
        return _first_callback([event for events in hands.map(one, ports) for event in events], done_ns)


def _first_callback(events: Sequence[Injected], done_ns: int) -> int:
    """Its monotonic nanosecond; that of the change if somebody killed the host and nobody was called."""
    return min((callback.mono_ns for event in events for callback in event.callbacks), default=done_ns)


def _show_until(stage: Stage, wanted: Switches, since_ns: int, what: str) -> None:
    """Print states until the switches are as wanted. Raises Unexpected when chips are to be avoided for them."""
    while (state := stage.show(since_ns, what)).switches != wanted:
        continue
    if state.avoided:
        raise Unexpected(f"chips are to be avoided: {', '.join(sorted(state.avoided))}")
