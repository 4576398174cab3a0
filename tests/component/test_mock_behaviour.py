"""Behaviour of the mock library in client processes (native-abi 18.2), each process real, each node served."""

import signal
import struct
import threading
from pathlib import Path

import pytest
from kit.abi_client import AbiClient, data, out

from nodeagent.mock.launch import MockServer, library_dir

HEALTH, CODES = "dcmi_get_device_health", "dcmi_get_device_errorcode_v2"
FILL = 0x5A


@pytest.fixture
def node(tmp_path):
    """Serve a node description (YAML of `node:`); everything is stopped at the end."""
    started = []

    def serve(fields: str = "profile: a2", **options):
        """options: those of MockServer.start."""
        path = tmp_path / f"node{len(started)}.yaml"
        path.write_text(f"node: {{{fields}}}\n")
        server = MockServer.start(path, **options)
        started.append(server)
        return server

    yield serve
    for server in started:
        server.stop()


@pytest.fixture
def client():
    """Start a client process on a server, initialised unless told otherwise."""
    started = []

    def connect(server, init="dcmi_init"):
        process = AbiClient(library_dir() / "libdcmi.so", server.environment())
        started.append(process)
        if init:
            assert process.call(init).rc == 0
        return process

    yield connect
    for process in started:
        process.close()


@pytest.fixture
def control(node):
    """Control connections that are closed at the end."""
    opened = []

    def connect(server):
        opened.append(server.control())
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


def codes_of(process, chip=0, capacity=128):
    """Return code and codes of a chip on an A2 node."""
    result = process.call(CODES, chip, 0, out(4), out(4 * capacity), capacity)
    return result.rc, result.numbers(1, max(0, result.number(0)))


def cards_of(process):
    result = process.call("dcmi_get_card_list", out(4), out(4 * 64), 64)
    return result.numbers(1, result.number(0))


# Row 1, 3: init and topology


def test_calls_before_init(node, client):
    process = client(node(), init=None)
    assert process.call("dcmi_get_card_list", out(4), out(256), 64).rc == -8005
    assert process.call(HEALTH, 0, 0, out(4)).rc == -8005
    for mapping in ("dcmi_get_device_phyid_from_logicid", "dcmi_get_device_logicid_from_phyid"):
        assert process.call(mapping, 0, out(4)).rc == -8012
    assert process.call("dcmi_get_card_id_device_id_from_logicid", out(4), out(4), 0).rc == -8012


def test_topology_is_fixed_by_init(node, client, control):
    """A lost card stays listed; a second init changes nothing; a fresh library sees the truth (rows 3 and 5)."""
    server = node("profile: a2, card_ids: [0, 1, 4, 7]")
    process = client(server)
    assert cards_of(process) == [0, 1, 4, 7]
    control(server).drop_card(4)
    assert process.call("dcmi_init").rc == 0
    assert cards_of(process) == [0, 1, 4, 7]
    assert process.call(HEALTH, 4, 0, out(4)).rc == -8012
    assert process.ask(reload=True) == "reloaded"
    assert process.call("dcmi_get_card_list", out(4), out(256), 64).rc == -8005
    assert process.call("dcmi_init").rc == 0
    assert cards_of(process) == [0, 1, 7]
    control(server).return_card(4)
    assert process.call(HEALTH, 4, 0, out(4)).rc == -8008
    assert cards_of(client(server)) == [0, 1, 4, 7]


def test_slow_and_failing_init(node, client):
    server = node("profile: a2, init_delay_s: 0.2, failing: [{function: dcmi_init, code: -8005, times: 2}]")
    process = client(server, init=None)
    assert [process.call("dcmi_init").rc for _ in range(3)] == [-8005, -8005, 0]


# Row 4, 5, 7: codes and health


def test_code_list_is_filled_to_its_count_only(node, client, control):
    server = node()
    process = client(server)
    for code in ("80E18005", "80E01801", "00000000"):
        control(server).raise_fault(0, code, severity="minor")
    result = process.call(CODES, 0, 0, out(4), out(4 * 5, FILL), 5)
    assert (result.rc, result.number(0)) == (0, 3)
    assert result.numbers(1, 5) == [0x80E18005, 0x80E01801, 0, 0x5A5A5A5A, 0x5A5A5A5A]
    short = process.call(CODES, 0, 0, out(4, FILL), out(8, FILL), 2)
    assert (short.rc, short.outs) == (-8001, (bytes([FILL]) * 4, bytes([FILL]) * 8))
    assert process.call(HEALTH, 0, 0, out(4)).number() == 1


def test_a_full_list_of_128_codes(node, client, control):
    server = node()
    for index in range(130):
        control(server).raise_fault(2, f"{0x80E10000 + index:08X}", event=False)
    rc, codes = codes_of(client(server), 2)
    assert (rc, codes) == (0, [0x80E10000 + index for index in range(128)])


def test_dropped_card(node, client, control):
    """Health -8012 with the vendor's "unknown" left behind, codes -8005, the neighbours untouched (row 5)."""
    server = node()
    process = client(server)
    control(server).raise_fault(5, "80E18005")
    control(server).drop_card(5)
    health = process.call(HEALTH, 5, 0, out(4))
    assert (health.rc, health.number()) == (-8012, 4)
    assert codes_of(process, 5)[0] == -8005
    assert process.call(HEALTH, 4, 0, out(4)).rc == 0
    control(server).return_card(5)
    assert process.call(HEALTH, 5, 0, out(4)).number() == 2
    assert codes_of(process, 5) == (0, [0x80E18005])


def test_a_recovery_lingers_in_the_list(node, client, control):
    """The event is there at once, the list follows after the lag (row 7)."""
    server = node("profile: a2, recovery_lag_ms: 60000")
    process = client(server)
    process.subscribe()
    control(server).raise_fault(1, "80E18005")
    control(server).clear_fault(1, "80E18005")
    assert [event.assertion for event in process.heard(2)] == [1, 0]
    assert codes_of(process, 1) == (0, [0x80E18005])


def test_restarted_client_sees_the_same_node(node, client, control):
    server = node()
    first = client(server)
    control(server).raise_fault(3, "80E18005")
    first.process.kill()
    assert first.exit_code() == -signal.SIGKILL
    assert codes_of(client(server), 3) == (0, [0x80E18005])


# Row 6: subscription


def test_subscription_rules(node, client, control):
    server = node()
    process = client(server)
    assert process.call("dcmi_subscribe_fault_event", -1, -1, {"filter": [0, 0, 0, 0]}, None).rc == -8001
    assert process.subscribe() == 0
    assert process.subscribe() == -8020
    assert process.subscribe("dcmi_subscribe_fault_event", 0, 0) == -8020
    (event,) = control(server).raise_fault(
        3, "80E18005", severity="critical", time_ms=1_700_000_000_123, node_type=0x70, info="c0ffee"
    )
    (heard,) = process.heard(1)
    assert (heard.code, heard.chip, heard.severity, heard.assertion) == (0x80E18005, 3, 3, 1)
    assert heard.raised_time_ms == 1_700_000_000_123
    assert heard.raw[14] == 0x70
    assert heard.raw[8 + 288 :][:3] == b"\xc0\xff\xee"
    assert heard.thread == "fault_event_subscribe"[:15]
    assert [callback.pid for callback in event.callbacks] == [process.process.pid]
    assert event.callbacks[0].mono_ns >= event.injected_mono_ns


def test_event_buffer_is_reused_and_poisoned(node, client, control):
    """A handler that keeps the pointer reads 0xA5 (row 6)."""
    server = node()
    process = client(server)
    process.subscribe()
    control(server).notice(0, "80C98006")
    control(server).notice(0, "80C98007")
    first, second = process.heard(2)
    assert first.address == second.address
    assert first.assertion == 2
    assert process.ask(peek=first.address) == "a5" * 360


def test_early_events_come_before_subscribe_returns(node, client):
    fault = 'faults: [{chip: 2, code: "80E18005", severity: minor}]'
    process = client(node(f"profile: a2, early_events: true, {fault}"))
    assert process.subscribe() == 0
    (event,) = process.heard(1)
    assert (event.code, event.chip, event.within) == (0x80E18005, 2, True)


def test_present_faults_are_silent_without_the_option(node, client, control):
    server = node('profile: a2, faults: [{chip: 2, code: "80E18005"}]')
    process = client(server)
    process.subscribe()
    control(server).notice(0, "80C98006")
    assert [event.code for event in process.heard(1)] == [0x80C98006]
    assert codes_of(process, 2) == (0, [0x80E18005])


def test_refused_subscriptions_can_be_tried_again(node, client):
    process = client(node("profile: a2, subscribe_failures: 2"))
    assert [process.subscribe() for _ in range(3)] == [-8020, -8020, 0]


def test_exhausted_slots_spoil_the_process(node, client, control):
    """Without a slot a process gets none any more, even when one is free again (7.4)."""
    server = node("profile: a2, subscribe_slots: 1")
    first, second = client(server), client(server)
    assert first.subscribe() == 0
    assert second.subscribe() == -8020
    first.close()
    while control(server).state()["subscribers"]:
        pass
    assert second.subscribe() == -8020
    assert client(server).subscribe() == 0


@pytest.mark.parametrize(
    ("fields", "codes"),
    [
        ({"flags": 1, "code": 0x80E18005}, [0x80E18005]),
        ({"flags": 2, "severity": 2}, [0x80E18005, 0x80E01801]),
        ({"flags": 4, "node_type": 0x70}, [0x80E01801]),
        ({"flags": 6, "severity": 3, "node_type": 0x70}, [0x80E01801]),
        ({}, [0x80E18005, 0x80E01801, 0x80C98006, 1]),
    ],
)
def test_filters(node, client, control, fields, codes):
    """Section 7.2: bits combine; the last event ends the test's wait where it passes the filter."""
    server = node()
    process = client(server)
    process.subscribe(**fields)
    control(server).raise_fault(0, "80E18005", severity="major")
    control(server).raise_fault(1, "80E01801", severity="critical", node_type=0x70)
    control(server).raise_fault(2, "80C98006", severity="minor")
    control(server).notice(700, "1")
    assert [event.code for event in process.heard(len(codes))] == codes


def test_every_subscriber_is_told(node, client, control):
    server = node()
    processes = [client(server) for _ in range(3)]
    assert [process.subscribe() for process in processes] == [0, 0, 0]
    (event,) = control(server).set_link(2, up=False)
    assert {callback.pid for callback in event.callbacks} == {process.process.pid for process in processes}
    assert [process.heard(1)[0].code for process in processes] == [0x81078603] * 3
    assert control(server).set_link(2, up=False) == []
    (event,) = control(server).set_link(2, up=True)
    assert (event.code, event.assertion) == ("81078603", 0)


def test_one_event_without_a_subscription(node, client, control):
    """`dcmi_get_fault_event` takes one event of its chip and times out with -8006 (7.3)."""
    server = node()
    process = client(server)
    flt = {"filter": [0, 0, 0, 0]}
    assert process.call("dcmi_get_fault_event", 1, 0, 0, flt, out(360)).rc == -8006
    assert process.call("dcmi_get_fault_event", 1, 0, 30001, flt, out(360)).rc == -8001
    process.send(call="dcmi_get_fault_event", args=[1, 0, -1, flt, out(360)])
    commands, answered = control(server), threading.Event()

    def inject():  # again and again: nobody can see from outside when the call has begun to wait
        while not answered.is_set():
            commands.notice(0, "80C98006")
            commands.notice(1, "80C98007")

    injector = threading.Thread(target=inject)
    injector.start()
    result = process.result(process.receive())
    answered.set()
    injector.join()
    assert result.rc == 0
    assert struct.unpack_from("<IH", result.outs[0], 8) == (0x80C98007, 1)


# Row 8: hang, and crash


def test_hang_blocks_one_call_only(node, client, control):
    """Another process, and another chip, go on while one call sleeps; it ends with the normal answer."""
    server = node()
    hanging, other = client(server), client(server)
    control(server).hang(HEALTH, 600, chip=4)
    hanging.send(call=HEALTH, args=[4, 0, out(4)])
    assert other.call(HEALTH, 3, 0, out(4)).rc == 0
    assert other.call(CODES, 4, 0, out(4), out(512), 128).rc == 0
    control(server).hang(HEALTH, 0, chip=4)
    assert other.call(HEALTH, 4, 0, out(4)).rc == 0
    assert hanging.process.poll() is None


def test_hang_ends_with_the_answer_of_that_time(node, client, control):
    server = node()
    process = client(server)
    control(server).hang("dcmi_get_device_network_health", 0.5, chip=1)
    process.send(call="dcmi_get_device_network_health", args=[1, 0, out(4)])
    control(server).set_gateway(1, 2)
    result = process.result(process.receive())
    assert (result.rc, result.number()) == (0, 2)


def test_a_hang_does_not_block_other_threads(node, client, control):
    server = node()
    process = client(server)
    control(server).hang(HEALTH, 0.5, chip=0, times=1)
    assert process.ask(threads=8, calls=20) == [20] * 8


@pytest.mark.parametrize("name", ["SEGV", "ABRT", "KILL"])
def test_crash(node, client, control, name):
    server = node()
    process = client(server)
    number = signal.Signals[f"SIG{name}"]
    control(server).crash(HEALTH, chip=2, signal=int(number))
    assert process.call(HEALTH, 1, 0, out(4)).rc == 0
    with pytest.raises(EOFError):
        process.call(HEALTH, 2, 0, out(4))
    assert process.exit_code() == -number
    assert client(server).call(HEALTH, 2, 0, out(4)).rc == 0


# Row 9, 13: pingmesh


def operate(addresses: bytes, *, size=1792, packets=10, interval_ms=10, task_interval_s=1, task_id=0) -> bytes:
    return struct.pack("<1024s6i", addresses, size, packets, interval_ms, 1, task_interval_s, task_id)


def test_hccs_pingmesh(node, client, control):
    server = node("profile: a3")
    process = client(server)
    raw = operate(b"62980097,62914560")
    started = process.call("dcmi_start_hccsping_mesh", 0, 1, 0, data(raw))
    assert started.rc == 0
    assert started.outs[0][:18] == b"62980097\x0062914560\0"
    assert process.call("dcmi_get_hccsping_mesh_state", 0, 1, 0, 0, out(4)).number() == 1
    assert process.call("dcmi_get_hccsping_mesh_state", 0, 0, 0, 0, out(4)).number() == 0
    info = process.call("dcmi_get_hccsping_mesh_info", 0, 1, 0, 0, out(3272, FILL))
    assert info.rc == 0
    assert struct.unpack_from("<i", info.outs[0], 3264) == (2,)
    assert info.outs[0][:32] == b"62980097".ljust(16, b"\0") + b"62914560".ljust(16, b"\0")
    control(server).reset(1)
    info = process.call("dcmi_get_hccsping_mesh_info", 0, 1, 0, 0, out(3272, FILL))
    assert (info.rc, info.outs[0]) == (0, bytes(3272))
    assert process.call("dcmi_get_hccsping_mesh_state", 0, 1, 0, 0, out(4)).number() == 0
    assert process.call("dcmi_stop_hccsping_mesh", 0, 1, 0, 0).rc == 0


@pytest.mark.parametrize(
    "raw",
    [
        operate(b",".join(b"%d" % index for index in range(49))),
        operate(b""),
        operate(b"192.168.0.1,62914560"),
        operate(b"10.0.0.1"),
        operate(b"1", size=1791),
        operate(b"1", packets=1001),
        operate(b"1", interval_ms=-1),
        operate(b"1", task_interval_s=61),
        operate(b"1", task_id=2),
    ],
)
def test_hccs_pingmesh_limits(node, client, raw):
    process = client(node("profile: a3"))
    assert process.call("dcmi_start_hccsping_mesh", 0, 0, 0, data(raw)).rc == -8001
    assert process.call("dcmi_get_hccsping_mesh_state", 0, 0, 0, 0, out(4)).number() == 0


def test_too_many_destinations_are_fatal_in_strict_mode(node, client):
    process = client(node("profile: a3, strict_pingmesh: true"))
    full = operate(b",".join(b"%d" % index for index in range(48)))
    assert process.call("dcmi_start_hccsping_mesh", 0, 0, 0, data(full)).rc == 0
    over = operate(b",".join(b"%d" % index for index in range(49)))
    with pytest.raises(EOFError):
        process.call("dcmi_start_hccsping_mesh", 0, 0, 0, data(over))
    assert process.exit_code() == -signal.SIGABRT


def test_raw_pingmesh_answers(node, client):
    """65534 in place of -8255, and an empty success from info (row 13)."""
    process = client(node("profile: a2, raw_pingmesh: true"))
    assert process.call("dcmi_start_hccsping_mesh", 0, 0, 0, data(operate(b"1"))).rc == 65534
    assert process.call("dcmi_stop_hccsping_mesh", 0, 0, 0, 0).rc == 65534
    assert process.call("dcmi_get_hccsping_mesh_state", 0, 0, 0, 0, out(4)).rc == 65534
    info = process.call("dcmi_get_hccsping_mesh_info", 0, 0, 0, 0, out(3272, FILL))
    assert (info.rc, info.outs[0]) == (0, bytes(3272))


def test_ub_pingmesh(node, client):
    process = client(node("profile: 950"), init="dcmiv2_init")
    entry = struct.pack("<16s1024s7i", b"S" * 16, b"A" * 16 + b"B" * 16, 2, 1792, 10, 10, 1, 1, 0)
    assert process.call("dcmiv2_start_ub_ping_mesh", 3, 2, data(entry * 2)).rc == 0
    assert process.call("dcmiv2_get_ub_ping_mesh_state", 3, 0, out(4)).number() == 1
    info = process.call("dcmiv2_get_ub_ping_mesh_info", 3, 0, out(3552 * 48), 48, out(4))
    assert (info.rc, info.number(1)) == (0, 2)
    assert info.outs[0][:48] == b"S" * 16 + b"A" * 16 + b"B" * 16
    assert struct.unpack_from("<i", info.outs[0], 3536) == (2,)
    assert process.call("dcmiv2_stop_ub_ping_mesh", 3, 0).rc == 0
    over = struct.pack("<16s1024s7i", b"", b"", 49, 1792, 10, 10, 1, 1, 0)
    assert process.call("dcmiv2_start_ub_ping_mesh", 3, 1, data(over)).rc == -8001
    eids = process.call("dcmiv2_get_eid_list_by_urma_dev_index", 3, 0, out(24 * 32), data(struct.pack("<I", 32)))
    assert (eids.rc, eids.number(1)) == (0, 2)


# Row 12: support and permission


def test_unsupported_and_unprivileged(node, client):
    process = client(node("profile: a3, privileged: false, unsupported: [dcmi_get_device_ip]"))
    assert process.call("dcmi_get_device_ip", 0, 0, 1, 0, out(20), out(20)).rc == -8255
    assert process.call("dcmi_start_hccsping_mesh", 0, 0, 0, data(operate(b"1"))).rc == -8002
    assert process.call("dcmi_get_device_boot_status", 0, 0, out(4)).rc == -8002
    assert process.call("dcmi_set_device_reset", 0, 0, 1).rc == -8002
    assert process.call("dcmi_set_spod_node_status", 0, 0, 5, 1).rc == -8002
    assert process.call("dcmi_get_spod_node_status", 0, 0, 5, out(4)).rc == 0
    assert process.call(HEALTH, 0, 0, out(4)).rc == 0


def test_failing_function_for_some_calls(node, client, control):
    server = node()
    process = client(server)
    control(server).fail("dcmiv2_get_device_error_code_list", -8006, chip=4, times=2)
    assert [codes_of(process, 4)[0] for _ in range(3)] == [-8006, -8006, 0]
    control(server).fail(HEALTH, -8012)
    assert process.call(HEALTH, 0, 0, out(4)).rc == -8012
    control(server).fail(HEALTH, 0)
    assert process.call(HEALTH, 0, 0, out(4)).rc == 0


def test_snapshot_of_events_on_950(node, client, control):
    """Details of the active faults; the v1 twin never works (7.3)."""
    server = node("profile: 950")
    process = client(server, init="dcmiv2_init")
    control(server).raise_fault(2, "80E18005", severity="critical")
    events = process.call("dcmiv2_get_device_current_fault_event", 2, out(360 * 4), 4, out(4))
    assert (events.rc, events.number(1)) == (0, 1)
    assert struct.unpack_from("<IH", events.outs[0], 8) == (0x80E18005, 2)
    assert process.call("dcmi_get_device_current_fault_event", 2, 0, out(360 * 4), 4, out(4)).rc == -8255


# Storm, log, end of the server


def test_storm_arrives_whole_and_ends_exactly(node, client, control):
    """1000 events per second: as many callbacks as events, in order per chip, end state as promised."""
    server = node()
    process = client(server)
    process.subscribe()
    total = control(server).storm(1000, 2, codes=["80E18005", "80E01801"], leave_raised=True)
    events = process.heard(total)
    assert len(events) == total
    assert abs(total - 2000) <= 16
    for chip in range(8):
        for code in (0x80E18005, 0x80E01801):
            order = [event.assertion for event in events if (event.chip, event.code) == (chip, code)]
            assert order == [1, 0] * (len(order) // 2) + [1]
        assert codes_of(process, chip) == (0, [0x80E18005, 0x80E01801])
    state = control(server).state()
    assert (state["storms"], state["subscribers"][0]["dropped"]) == ([{"total": total, "sent": total}], 0)


def test_a_full_queue_drops_and_counts(node, client, control):
    """Kernel-side queueing is limited (7.4): with a handler that stands still, later events are lost."""
    server = node("profile: a2, queue_events: 10")
    process = client(server)
    process.subscribe()
    process.process.send_signal(signal.SIGSTOP)
    total = control(server).storm(20000, 0.5)
    while control(server).state()["storms"][0]["sent"] < total:
        pass
    process.process.send_signal(signal.SIGCONT)
    while control(server).state()["subscribers"][0]["waiting"]:
        pass
    (report,) = control(server).state()["subscribers"]
    assert report["dropped"] > 0
    assert report["delivered"] + report["dropped"] == total


def test_call_log(node, client, control, tmp_path):
    path = tmp_path / "calls.jsonl"
    server = node("profile: a2", log_calls=path)
    process = client(server)
    process.call(HEALTH, 3, 0, out(4))
    process.call(HEALTH, 9, 0, out(4))
    calls = control(server).calls(10, function=HEALTH)
    assert [(call["args"], call["rc"], call["pid"]) for call in calls] == [
        ([3, 0], 0, process.process.pid),
        ([9, 0], -8008, process.process.pid),
    ]
    control(server).log_calls(False)
    process.call(HEALTH, 1, 0, out(4))
    assert len(control(server).calls(10, function=HEALTH)) == 2
    assert path.read_text().count(HEALTH) == 2


def test_end_of_the_server(node, client):
    """The library does not take its client along when the server goes; init finds the next one."""
    server = node()
    process = client(server)
    process.subscribe()
    socket = Path(server.socket)
    server.stop()
    assert process.call(HEALTH, 0, 0, out(4)).rc == -8005
    assert process.call("dcmi_init").rc == -8005
    socket.parent.mkdir(exist_ok=True)
    node("profile: a2", socket=socket)
    assert process.call("dcmi_init").rc == 0
    assert process.call(HEALTH, 0, 0, out(4)).rc == 0
