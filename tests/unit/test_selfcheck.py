"""Verdicts of the self-check on given facts."""

from dataclasses import replace
from email.utils import formatdate

import pytest

from nodeagent.cluster.calls import Call, NoAnswerError, RefusalError
from nodeagent.core.errors import LibraryError
from nodeagent.core.instant import Instant
from nodeagent.core.settings import (
    ClusterSettings,
    EventSettings,
    FaultSettings,
    IpmiSettings,
    NodeObjectSettings,
    NodeSettings,
    PublicFaultSettings,
    PublishSettings,
    Settings,
    ShadowSettings,
    StorageSettings,
)
from nodeagent.daemon.selfcheck import cluster_checks, node_checks
from nodeagent.daemon.selfcheck.check import Check, Verdict, fail, ok, shortened, skipped, warn, worst
from nodeagent.daemon.selfcheck.cluster_checks import ServerSaid, check_clock, check_other_writer, clock_ahead_s
from nodeagent.daemon.selfcheck.node_checks import (
    DaemonFound,
    DeviceFile,
    FolderTried,
    LibraryFound,
    check_daemon,
    check_device_files,
    check_folder,
    check_library,
    check_switch_library,
)
from nodeagent.daemon.selfcheck.rights import Right, check_rights, needed_rights, rbac_rules
from nodeagent.render.device_info import DEVICE_KEY

NOW_S = 1_796_068_800  # 2026-11-30 20:00:00 UTC
NOW = Instant(1_000_000, NOW_S * 1000)
SETTINGS = Settings(node=NodeSettings(name="worker-1"))
GET = Call("get", "configmaps", "x", "kube-system", "mindx-dl-deviceinfo-worker-1")
OWN = "mindx-dl-deviceinfo-worker-1"
NODE_FAULTS = {
    Right("create", "configmaps", "mindx-dl"),
    *(Right(verb, "configmaps", "mindx-dl", "mindx-dl-nodeinfo-worker-1") for verb in ("get", "update", "delete")),
    *(Right(verb, "configmaps", "mindx-dl", "mindx-dl-node-fault-config") for verb in ("get", "list", "watch")),
    *(
        Right(verb, "configmaps", "mindx-dl", f"nodeagent-publicfault-{client}-worker-1")
        for verb in ("get", "update")
        for client in ("dpc", "dtfs")
    ),
    Right("get", "pods", "mindx-dl"),
}
WITHOUT_NODE_FAULTS = replace(
    SETTINGS, ipmi=IpmiSettings(transport="off"), public_faults=PublicFaultSettings(delivery="off")
)


class TestWorst:
    def test_a_failure_outweighs_warnings(self) -> None:
        assert worst([ok("a", ""), fail("b", ""), warn("c", "")]) is Verdict.FAIL
        assert worst([ok("a", ""), warn("c", ""), skipped("d", "")]) is Verdict.WARN

    def test_what_is_skipped_is_no_trouble(self) -> None:
        assert worst([skipped("a", ""), ok("b", "")]) is Verdict.OK
        assert worst([]) is Verdict.OK

    def test_long_lists_are_counted(self) -> None:
        assert shortened(list("abcdefg"), 3) == ["a", "b", "c", "and 4 more"]
        assert shortened(list("abc"), 3) == ["a", "b", "c"]


class TestNeededRights:
    def test_all_that_the_default_settings_need(self) -> None:
        assert set(needed_rights(SETTINGS)) == {
            Right("create", "configmaps", "kube-system"),
            *(Right(verb, "configmaps", "kube-system", OWN) for verb in ("get", "update", "list", "watch")),
            *(Right(verb, "configmaps", "kube-system", "mindx-dl-fault-config") for verb in ("get", "list", "watch")),
            *(Right(verb, "pods") for verb in ("list", "watch")),
            *(Right(verb, "nodes", name="worker-1") for verb in ("get", "patch")),
            Right("create", "events", "kube-system"),
            *NODE_FAULTS,
        }
        assert len(set(needed_rights(SETTINGS))) == len(needed_rights(SETTINGS))

    def test_what_is_switched_off_needs_no_right(self) -> None:
        bare = replace(
            WITHOUT_NODE_FAULTS,
            faults=FaultSettings(config_map=""),
            cluster=ClusterSettings(pods=False),
            node_object=NodeObjectSettings(enabled=False),
            events=EventSettings(enabled=False),
        )
        assert {(right.resource, right.name) for right in needed_rights(bare)} == {
            ("configmaps", ""),
            ("configmaps", OWN),
        }

    def test_each_side_of_node_faults_needs_its_own(self) -> None:
        storage = StorageSettings(dpc="off", dtfs="auto")
        rights = set(needed_rights(replace(WITHOUT_NODE_FAULTS, public_faults=PublicFaultSettings(), storage=storage)))
        assert rights - set(needed_rights(WITHOUT_NODE_FAULTS)) == {
            Right("create", "configmaps", "mindx-dl"),
            *(Right(v, "configmaps", "mindx-dl", "nodeagent-publicfault-dtfs-worker-1") for v in ("get", "update")),
        }
        board = replace(WITHOUT_NODE_FAULTS, ipmi=IpmiSettings(), faults=FaultSettings(node_config_map=""))
        assert {right.name for right in needed_rights(board) if right.namespace == "mindx-dl"} == {
            "",
            "mindx-dl-nodeinfo-worker-1",
        }
        assert not {right for right in needed_rights(WITHOUT_NODE_FAULTS) if right.namespace == "mindx-dl"}

    def test_conditions_need_the_status_of_the_node(self) -> None:
        wanted = replace(SETTINGS, node_object=NodeObjectSettings(conditions=True))
        assert Right("patch", "nodes", name="worker-1", subresource="status") in needed_rights(wanted)
        shadow = replace(wanted, publish=PublishSettings(mode="shadow"))
        assert "nodes" not in {right.resource for right in needed_rights(shadow)}

    def test_a_shadow_needs_rights_on_its_own_object_only(self) -> None:
        shadow = replace(SETTINGS, publish=PublishSettings(mode="shadow"))
        names = {right.name for right in needed_rights(shadow) if right.verb == "update"}
        assert names == {
            f"{OWN}-shadow",
            "mindx-dl-nodeinfo-worker-1-shadow",
            "nodeagent-publicfault-dpc-worker-1-shadow",
            "nodeagent-publicfault-dtfs-worker-1-shadow",
        }
        assert {right.verb for right in needed_rights(shadow) if right.name == OWN} == {"list", "watch"}
        apart = replace(shadow, shadow=ShadowSettings(compare=False))
        assert OWN not in {right.name for right in needed_rights(apart)}, "nothing is compared, nothing is followed"
        assert "nodes" not in {right.resource for right in needed_rights(shadow)}

    @pytest.mark.parametrize("target", ["directory", "stdout"])
    def test_without_a_cluster_none(self, target: str) -> None:
        assert needed_rights(replace(SETTINGS, publish=PublishSettings(target=target))) == ()

    def test_a_review_asks_for_exactly_the_right(self) -> None:
        right = Right("patch", "nodes", name="worker-1", subresource="status")
        asked = right.review()["spec"]
        assert asked == {
            "resourceAttributes": {"verb": "patch", "resource": "nodes", "subresource": "status", "name": "worker-1"}
        }


class TestRights:
    def test_rules_are_put_together_by_role_and_object(self) -> None:
        rights = [
            Right("get", "configmaps", "kube-system", "a"),
            Right("list", "pods"),
            Right("update", "configmaps", "kube-system", "a"),
            Right("create", "configmaps", "kube-system"),
            Right("patch", "nodes", subresource="status"),
            Right("create", "events", group="events.k8s.io"),
        ]
        assert rbac_rules(rights) == [
            "# Role in the namespace kube-system",
            '- {apiGroups: [""], resources: ["configmaps"], resourceNames: ["a"], verbs: ["get", "update"]}',
            '- {apiGroups: [""], resources: ["configmaps"], verbs: ["create"]}',
            "# ClusterRole",
            '- {apiGroups: [""], resources: ["pods"], verbs: ["list"]}',
            '- {apiGroups: [""], resources: ["nodes/status"], verbs: ["patch"]}',
            '- {apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create"]}',
        ]

    def test_the_missing_ones_are_named_as_rules(self) -> None:
        needed = needed_rights(SETTINGS)
        check = check_rights(needed, [Right("watch", "pods")])
        assert check.verdict is Verdict.FAIL
        first, *rules = check.detail.splitlines()
        assert first == f"1 of {len(needed)} rights are missing"
        assert rules == ["# ClusterRole", '- {apiGroups: [""], resources: ["pods"], verbs: ["watch"]}']

    def test_none_missing(self) -> None:
        assert check_rights(needed_rights(SETTINGS), []).verdict is Verdict.OK

    def test_a_server_that_does_not_say_is_no_missing_right(self) -> None:
        assert check_rights(needed_rights(SETTINGS), NoAnswerError("gone")).verdict is Verdict.WARN


def said(server_s: float, asked_s: float, answered_s: float | None = None) -> ServerSaid:
    """An answer at whole seconds of the server's clock."""
    date = formatdate(server_s, usegmt=True)
    answered_s = asked_s if answered_s is None else answered_s
    return ServerSaid("v1.33.1", date, Instant(0, int(asked_s * 1000)), Instant(0, int(answered_s * 1000)))


class TestClock:
    def test_both_may_agree(self) -> None:
        # The header has whole seconds: anything from 0 up to the next second, and as long as the question took.
        assert clock_ahead_s(said(NOW_S, NOW_S + 0.9)) == 0
        assert clock_ahead_s(said(NOW_S + 3, NOW_S, NOW_S + 4)) == 0

    def test_ahead_and_behind_are_what_is_sure(self) -> None:
        assert clock_ahead_s(said(NOW_S, NOW_S + 11)) == 10
        assert clock_ahead_s(said(NOW_S, NOW_S - 10)) == -10

    @pytest.mark.parametrize(
        ("ahead_s", "verdict"),
        [
            (6.0, Verdict.OK),
            (6.1, Verdict.WARN),
            (61.0, Verdict.WARN),
            (61.1, Verdict.FAIL),
            (-5.0, Verdict.OK),
            (-5.1, Verdict.WARN),
            (-60.0, Verdict.WARN),
            (-60.1, Verdict.FAIL),
        ],
    )
    def test_more_than_5_s_warn_more_than_60_s_fail(self, ahead_s: float, verdict: Verdict) -> None:
        assert check_clock(said(NOW_S, NOW_S + ahead_s)).verdict is verdict

    @pytest.mark.parametrize("date", ["", "yesterday", "Mon, 99 Foo 2026 99:99:99 GMT"])
    def test_no_usable_date_is_no_verdict(self, date: str) -> None:
        assert check_clock(replace(said(NOW_S, NOW_S), date=date)).verdict is Verdict.SKIPPED

    def test_no_answer_is_no_verdict(self) -> None:
        assert check_clock(NoAnswerError("gone")).verdict is Verdict.SKIPPED


class TestServer:
    def test_a_refused_version_is_still_a_server(self) -> None:
        refusal = RefusalError(Call("get", "/version", "x"), 403, "no")
        assert cluster_checks.check_server("there", refusal).verdict is Verdict.WARN
        assert cluster_checks.no_use_to_ask(refusal) == ""

    @pytest.mark.parametrize("error", [NoAnswerError("gone"), RefusalError(GET, 401, "no")])
    def test_no_answer_and_bad_credentials_end_the_asking(self, error: NoAnswerError | RefusalError) -> None:
        assert cluster_checks.check_server("there", error).verdict is Verdict.FAIL
        assert cluster_checks.no_use_to_ask(error)


class TestNode:
    def test_a_node_that_is_not_there(self) -> None:
        check = cluster_checks.check_node("worker-1", None)
        assert check.verdict is Verdict.FAIL
        assert "'worker-1'" in check.detail

    def test_not_being_allowed_to_ask_is_no_trouble(self) -> None:
        assert cluster_checks.check_node("worker-1", RefusalError(GET, 403, "no")).verdict is Verdict.SKIPPED

    def test_an_unanswered_question_is_no_absence(self) -> None:
        assert cluster_checks.check_node("worker-1", NoAnswerError("gone")).verdict is Verdict.WARN


def written_by(manager: str, ago_s: int) -> dict[str, object]:
    """The object as the server shows it after a write."""
    at = f"2026-11-30T{(NOW_S - ago_s) // 3600 % 24:02d}:{(NOW_S - ago_s) // 60 % 60:02d}:{(NOW_S - ago_s) % 60:02d}Z"
    entry = {"manager": manager, "time": at, "fieldsV1": {"f:data": {f"f:{DEVICE_KEY}": {}}}}
    return {"metadata": {"managedFields": [entry]}, "data": {DEVICE_KEY: "{}"}}


class TestOtherWriter:
    @pytest.mark.parametrize(
        ("mode", "other", "verdict"),
        [
            ("live", "wait", Verdict.FAIL),
            ("live", "overwrite", Verdict.WARN),
            ("shadow", "wait", Verdict.OK),
        ],
    )
    def test_a_foreign_write_of_a_minute_ago(self, mode: str, other: str, verdict: Verdict) -> None:
        publish = PublishSettings(mode=mode, other_writer=other)
        check = check_other_writer(publish, written_by("device-plugin", 60), NOW)
        assert check.verdict is verdict
        assert "device-plugin" in check.detail
        assert "2026-11-30 19:59:00 UTC" in check.detail

    @pytest.mark.parametrize("obj", [None, written_by("nodeagent", 60), written_by("device-plugin", 16 * 60)])
    def test_nobody_else(self, obj: dict[str, object] | None) -> None:
        assert check_other_writer(PublishSettings(), obj, NOW).verdict is Verdict.OK

    def test_unknown_is_neither_yes_nor_no(self) -> None:
        assert check_other_writer(PublishSettings(), NoAnswerError("gone"), NOW).verdict is Verdict.WARN
        assert check_other_writer(PublishSettings(), RefusalError(GET, 403, ""), NOW).verdict is Verdict.SKIPPED


def devices(*names: str, missing: tuple[str, ...] = (), refused: tuple[str, ...] = ()) -> list[DeviceFile]:
    """The three files of the driver and those of chips."""
    every = ("davinci_manager", "devmm_svm", "hisi_hdc", *names)
    return [DeviceFile(name, name not in missing, name not in (*missing, *refused)) for name in every]


class TestDeviceFiles:
    @pytest.mark.parametrize(
        ("files", "verdict", "word"),
        [
            (devices("davinci0", "davinci1"), Verdict.OK, "2 chips"),
            (devices("davinci0", missing=("hisi_hdc",)), Verdict.WARN, "/dev/hisi_hdc"),
            (devices("davinci0", missing=("davinci_manager",)), Verdict.FAIL, "/dev/davinci_manager"),
            (devices(), Verdict.FAIL, "/dev/davinci<N>"),
            (devices("davinci0", refused=("davinci0",)), Verdict.FAIL, "read and write /dev/davinci0"),
            (devices("davinci0", refused=("davinci_manager",)), Verdict.FAIL, "read and write /dev/davinci_manager"),
        ],
    )
    def test_verdicts(self, files: list[DeviceFile], verdict: Verdict, word: str) -> None:
        check = check_device_files(files, pretended=False)
        assert check.verdict is verdict
        assert word in check.detail

    def test_a_pretended_node_has_none(self) -> None:
        assert check_device_files(devices(), pretended=True).verdict is Verdict.SKIPPED


class TestLibrary:
    def test_not_found(self) -> None:
        check = check_library(LibraryError("not found", "mount it"), "auto", pretended=False)
        assert (check.verdict, check.hint) == (Verdict.FAIL, "mount it")

    @pytest.mark.parametrize(
        ("trusted", "wanted", "pretended", "verdict"),
        [
            (True, "auto", False, Verdict.OK),
            (True, "v1", False, Verdict.OK),
            (True, "v2", False, Verdict.FAIL),
            (False, "auto", False, Verdict.WARN),
            (False, "auto", True, Verdict.OK),
        ],
    )
    def test_verdicts(self, trusted: bool, wanted: str, pretended: bool, verdict: Verdict) -> None:
        assert check_library(LibraryFound("/x", trusted, ("v1",)), wanted, pretended).verdict is verdict

    def test_without_the_switch_library_chips_are_watched_all_the_same(self) -> None:
        check = check_switch_library(LibraryError("not found", "mount it"), pretended=False)
        assert check.verdict is Verdict.WARN
        assert "switches.enabled=false" in check.hint
        assert check.hint.endswith("mount it")

    @pytest.mark.parametrize(
        ("trusted", "pretended", "verdict"),
        [(True, False, Verdict.OK), (False, True, Verdict.OK), (False, False, Verdict.WARN)],
    )
    def test_who_can_write_to_the_switch_library(self, trusted: bool, pretended: bool, verdict: Verdict) -> None:
        assert check_switch_library(LibraryFound("/x", trusted), pretended).verdict is verdict


class TestUser:
    @pytest.mark.parametrize(
        ("uid", "pretended", "verdict"),
        [(0, False, Verdict.OK), (1000, False, Verdict.WARN), (1000, True, Verdict.SKIPPED)],
    )
    def test_verdicts(self, uid: int, pretended: bool, verdict: Verdict) -> None:
        assert node_checks.check_user(uid, pretended).verdict is verdict


class TestDaemon:
    @pytest.mark.parametrize(
        ("found", "verdict", "word"),
        [
            (DaemonFound("17", 8), Verdict.OK, "process 17 runs and knows 8 chips"),
            (DaemonFound("17", 8, released="noon"), Verdict.OK, "the driver is released until noon"),
            (DaemonFound("", None, "nobody"), Verdict.OK, "none runs"),
            (DaemonFound("17", None, "no answer"), Verdict.WARN, "no answer"),
            (DaemonFound("17", None, socket=False), Verdict.OK, "process 17"),
            (DaemonFound("", 8), Verdict.OK, "a daemon runs"),
        ],
    )
    def test_verdicts(self, found: DaemonFound, verdict: Verdict, word: str) -> None:
        check: Check = check_daemon(found)
        assert check.verdict is verdict
        assert word in check.detail


class TestFolder:
    MIB = 1024 * 1024

    @pytest.mark.parametrize(
        ("tried", "verdict", "word"),
        [
            (None, Verdict.SKIPPED, "daemon.state_dir is empty"),
            (FolderTried("/x", True, 8 * MIB), Verdict.OK, "8 MiB free"),
            (FolderTried("/x", False, 8 * MIB), Verdict.OK, "can be made"),
            (FolderTried("/x", True, 8 * MIB - 1), Verdict.WARN, "7 MiB free"),
            (FolderTried("/x", True, 0, "Read-only file system"), Verdict.FAIL, "Read-only file system"),
        ],
    )
    def test_verdicts(self, tried: FolderTried | None, verdict: Verdict, word: str) -> None:
        check = check_folder("state-folder", "daemon.state_dir", tried, 8 * self.MIB)
        assert check.verdict is verdict
        assert word in check.detail
