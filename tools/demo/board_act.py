"""The fourth act of the demonstration: alarms of the board, and a storage client whose process dies."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml
from board_simulator import BoardSimulator, NotPossible
from stage import NODE, OUT, Stage, Unexpected

from nodeagent.mock.folder import alarm_file_of, proc_of

SOCKET = OUT / "board.sock"
NODE_INFO = OUT / "mindx-dl" / f"mindx-dl-nodeinfo-{NODE}.yaml"
PUBLIC_FAULT = OUT / "mindx-dl" / f"nodeagent-publicfault-dpc-{NODE}.yaml"
PERIODS = {
    "ipmi.poll_period_s": "0.5",
    "ipmi.report_interval_s": "1",
    "storage.read_period_s": "0.5",
    "storage.dpc": "on",
}
"""A minute and five seconds as a rule; here nobody wants to wait."""
DPC_PROCESS = "110001020"
LIMIT_S = 30.0
"""A public fault keeps 7 s distance to the recovery before it, and is spread over some seconds."""

Read = Callable[[], str | None]


@contextlib.contextmanager
def board_stage() -> Iterator[tuple[Stage, str]]:
    """The stage of this act, and in words who plays the BMC."""
    description = OUT / "board.yaml"
    description.write_text("node: {profile: a2, storage: {dpc: [ok]}}\n")
    settings = {**PERIODS, "storage.proc": str(proc_of(SOCKET).resolve())}
    with contextlib.ExitStack() as stack:
        try:
            simulator = BoardSimulator(OUT, alarm_file_of(SOCKET))
        except NotPossible as problem:
            words = f"the pretended BMC of the mock; OpenIPMI's ipmi_sim would, but for: {problem}"
        else:
            stack.callback(simulator.stop)
            settings |= simulator.settings()
            words = f"OpenIPMI's ipmi_sim, pid {simulator.pid}, asked over LAN"
        yield stack.enter_context(Stage(description, settings, SOCKET)), words


def board_act(stage: Stage, bmc: str) -> None:
    """A CPU, then the system, raise an alarm and recover; a DPC process dies and lives again."""
    print("\nFourth act: an Atlas 800T A2 node again, its board and its storage client (DPC).")
    print(f"  BMC           {bmc}")
    print(f"  node faults   {NODE_INFO}, which exists only while there are any")
    print(f"  public faults {PUBLIC_FAULT}\n")
    stage.begin = time.monotonic()
    _step(stage, "CPU 1 raises alarm 0000001D", lambda: _raise(stage, "0000001D", 1), _node_info, _has("PreSeparate,"))
    _step(
        stage,
        "the system raises alarm 2C000031",
        lambda: _raise(stage, "2C000031", 255),
        _node_info,
        _has("UnHealthy,"),
    )
    _step(stage, "  that is over", lambda: stage.control.clear_alarm("2C000031"), _node_info, _has("PreSeparate,"))
    _step(
        stage,
        "  CPU 1 is well too",
        lambda: stage.control.clear_alarm("0000001D"),
        _node_info,
        lambda said: said is None,
    )

    process = f"{DPC_PROCESS} "
    _step(
        stage,
        "the process of DPC instance 1 dies",
        lambda: stage.control.set_storage("dpc", "ok", "process"),
        _public_fault,
        _has(f"{process}occur"),
    )
    _step(
        stage,
        "  it lives again",
        lambda: stage.control.set_storage("dpc", "ok", "ok"),
        _public_fault,
        _has(f"{process}recover"),
    )
    stage.expect_nothing_new()
    stage.line("  the object of the chips did not change meanwhile")


def _raise(stage: Stage, code: str, device_id: int) -> None:
    stage.control.raise_alarm(code, device_id=device_id, severity="critical")


def _has(words: str) -> Callable[[str | None], bool]:
    return lambda said: said is not None and words in said


def _step(stage: Stage, what: str, do: Callable[[], None], read: Read, wanted: Callable[[str | None], bool]) -> None:
    """Do something, and print what is published once it is as wanted."""
    since = time.monotonic()
    do()
    stage.say(what)
    while not wanted(said := read()):
        if time.monotonic() > since + LIMIT_S:
            raise Unexpected(f"after {LIMIT_S:g} s there is: {said or 'no object'}")
        time.sleep(0.002)
    stage.line(
        f"  published {said or 'nothing, the object is gone'}   ({(time.monotonic() - since) * 1000:.0f} ms later)"
    )


def _data(path: Path, key: str) -> dict[str, object] | None:
    """The JSON text of a data key of an object; None without the object."""
    try:
        told: dict[str, object] = json.loads(yaml.safe_load(path.read_text())["data"][key])
    except FileNotFoundError:
        return None
    return told


def _node_info() -> str | None:
    outer = _data(NODE_INFO, "NodeInfo")
    if outer is None:
        return None
    info = outer["NodeInfo"]
    devices = [
        f"{d['DeviceType']} {d['DeviceId']} {' '.join(d['FaultCode'])} {d['FaultLevel']}" for d in info["FaultDevList"]
    ]
    return f"node {info['NodeStatus']}, {'; '.join(devices) or 'no device'}"


def _public_fault() -> str | None:
    message = _data(PUBLIC_FAULT, "PublicFault")
    if message is None:
        return None
    faults = []
    for fault in message["faults"]:
        chips = [chip for influence in fault["influence"] for chip in influence["deviceIds"]]
        faults.append(f"{fault['faultCode']} {fault['assertion']} on chips {min(chips)}..{max(chips)}")
    return "; ".join(faults)
