"""The demonstration behind `make demo`: real daemon, mock driver library, files instead of a cluster.

Starts a mock node and `nodeagent run` as processes of their own, does to the hardware what timeline.yaml says, and
prints what the daemon published after each step and how long that took. Feel free to `kill -SEGV` the driver host
that the first lines name while it runs.
"""

import os
import queue
import shutil
import sys
import time
from pathlib import Path

import yaml
from board_act import board_act, board_stage
from stage import OBJECT, OUT, WAIT_S, Stage, Unexpected
from switch_act import switch_act

from nodeagent.cli.documents import configuration_of
from nodeagent.mock import scenario
from nodeagent.mock.client import injected

HERE = Path(__file__).parent
FACTOR = 40
OUTAGES, KILLED = 5, (3,)
LINK, LINK_NUMBER = "81078603", 2
LINK_CHIP = f"Ascend910-{LINK_NUMBER}"
LEFT = {("Ascend910-1", "81078603"): "NotHandleFault"}
"""Faults that timeline.yaml leaves."""


def main() -> int:
    """All acts; 0 when every step was published as it should be."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    begun = time.monotonic()
    try:
        with Stage(HERE / "node.yaml", {"chips.health_period_s": "1"}) as stage:
            first_act(stage)
        anchor = {"mock.time_factor": str(FACTOR), "mock.time_anchor_s": f"{time.monotonic():.3f}"}
        with Stage(HERE / "node.yaml", anchor) as stage:
            second_act(stage)
        with Stage("a3", {}) as stage:
            switch_act(stage)
        with board_stage() as (stage, bmc):
            board_act(stage, bmc)
    except Unexpected as problem:
        print(f"\nunexpected: {problem}; see {OUT / 'daemon.log'}", file=sys.stderr)
        return 1
    except queue.Empty:
        print(f"\nwhat should come next was not published in {WAIT_S:g} s; see {OUT / 'daemon.log'}", file=sys.stderr)
        return 1
    print(f"\nThe demonstration took {time.monotonic() - begun:.0f} s.")
    return 0


def first_act(stage: Stage) -> None:
    """Chips break and heal, in real time, as timeline.yaml says."""
    _opening(stage)
    config, _ = configuration_of([])
    timeline = HERE / "timeline.yaml"
    raw = yaml.safe_load(timeline.read_text())["timeline"]
    for step, action in zip(raw, scenario.load(timeline).timeline, strict=True):
        time.sleep(max(0.0, stage.begin + action.at_s - time.monotonic()))
        fields = {key: value for key, value in step.items() if key != "at_s"}
        done_ns = time.monotonic_ns()
        answer = stage.control.command(**fields)
        callbacks = [c.mono_ns for e in injected(answer) for c in e.callbacks] if "events" in answer else []
        stage.say(_what(fields, config.table.lookup))
        since_ns, what = (callbacks[0], "the callback") if callbacks else (done_ns, "the change")
        stage.show(since_ns, what)
        if fields["do"] == "notice":  # shown by exactly one report, so the next one is without it
            stage.show(since_ns, what)
    stage.expect(LEFT)
    left = ", ".join(f"{d} {c} {level}" for (d, c), level in stage.last.faults.items())
    print(f"\nLeft at the end: {left or 'no fault'}")
    print(f"The ConfigMap as ClusterD would read it ({OBJECT}):\n\n{OBJECT.read_text()}")


def second_act(stage: Stage) -> None:
    """Rules: a link that stays down, five of them, an isolation, kills, and an operator."""
    print(f"\nSecond act, in accelerated time: policy time runs {FACTOR} times as fast as yours,")
    print("so 20 s of outage pass in half a second and 60 s of hold in one and a half; writes keep their distance.\n")
    time.sleep(1.1)
    for outage in range(1, OUTAGES + 1):
        done_ns = time.monotonic_ns()
        stage.control.set_link(LINK_NUMBER, up=False)
        stage.say(f"outage {outage}: the link of chip {LINK_NUMBER} goes down")
        if outage in KILLED:
            stage.kill_and_start()
            stage.say("  the daemon is killed with -9 and started again")
        _show_until(stage, "ManuallySeparateNPU" if outage == OUTAGES else "PreSeparateNPU", done_ns, "it went down")
        done_ns = time.monotonic_ns()
        stage.control.set_link(LINK_NUMBER, up=True)
        stage.say("  the link is up again; the level is held for 60 s")
        if outage < OUTAGES:
            _show_until(stage, None, done_ns, "it came up")
    time.sleep(2.5)
    stage.kill_and_start()
    stage.say("the fault is gone, the isolation stays; the daemon is killed with -9 and started again")
    time.sleep(1.5)
    named = yaml.safe_load(OBJECT.read_text())["data"]["ManuallySeparateNPU"]
    stage.line(f"  published ManuallySeparateNPU: {named}")
    if named != LINK_CHIP:
        raise Unexpected(f"ManuallySeparateNPU is {named!r}")
    done_ns = time.monotonic_ns()
    _lift()
    stage.say("an operator deletes the name from ManuallySeparateNPU")
    _show_until(stage, None, done_ns, "the edit")


def _show_until(stage: Stage, wanted: str | None, since_ns: int, what: str) -> None:
    """Print states until the link code has this level (None: is gone)."""
    while stage.show(since_ns, what).faults.get((LINK_CHIP, LINK)) != wanted:
        continue


def _lift() -> None:
    """What an operator's editor does to the file."""
    obj = yaml.safe_load(OBJECT.read_text())
    obj["data"]["ManuallySeparateNPU"] = ""
    temporary = OBJECT.with_suffix(".edit")
    temporary.write_text(yaml.safe_dump(obj))
    temporary.replace(OBJECT)


def _opening(stage: Stage) -> None:
    hosts = map(str, stage.hosts("nodeagent-dcmi"))
    print("An Atlas 800T A2 node with 8 chips, pretended by a mock of the driver library.")
    print(f"  daemon        pid {stage.daemon.pid}")
    print(f"  driver host   pid {', '.join(hosts) or '?'}  (kill -SEGV it, if you like)")
    print(f"  hardware      NODEAGENT_MOCK_SOCKET={stage.server.socket}")
    print(f"  publishes to  {OBJECT}")
    first_ms = (stage.last.seen_ns - stage.started_ns) / 1e6
    print(f"First complete object {first_ms:.0f} ms after the daemon was started: 8 chips, no fault.\n")
    print("   time  what happened -> what was published, and how long after")


def _what(fields: dict[str, object], lookup: object) -> str:
    do, code = fields["do"], str(fields.get("code", ""))
    record = lookup(int(code, 16)) if code else None  # type: ignore[operator]
    name = f"{code} {record.name_en if record else '(in no fault table)'}" if code else ""
    return {
        "raise": f"chip {fields.get('chip')} raises {name}",
        "clear": f"chip {fields.get('chip')} recovers from {name}",
        "notice": f"chip {fields.get('chip')} sends the once-only notice {name}",
        "link": f"chip {fields.get('chip')}: network link goes {fields.get('state')}",
        "drop": f"card {fields.get('card')} drops off the bus (no event; found by the health query)",
        "return": f"card {fields.get('card')} is back",
    }[str(do)]


if __name__ == "__main__":
    os.chdir(HERE.parent.parent)
    sys.exit(main())
