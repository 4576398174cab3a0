"""Differences between two configurations, and what they do to chips with faults."""

from functools import cache

from nodeagent.core.levels import Level, Severity
from nodeagent.policy.configuration import build_configuration
from nodeagent.policy.rules import Configuration
from nodeagent.policy.table_diff import ActiveCode, CodeEffect, Effect, differences, effects
from nodeagent.sources.config_documents import shipped


@cache
def base() -> Configuration:
    return shipped()


def site(text: str) -> Configuration:
    return build_configuration(base(), [("site", text)])[0]


def test_texts_and_places_are_no_difference() -> None:
    new = site('faults: [{code: "80E01801", level: RestartBusiness, name: {en: other}}]\n')
    assert differences(base(), new).none


def test_levels() -> None:
    new = site('faults: [{code: "80E01801", level: RestartNPU}, {code: "8F000001", level: SeparateNPU}]\n')
    found = differences(base(), new)
    assert [(each.text, each.before, each.after, each.place) for each in found.levels] == [
        ("80E01801", Level.RESTART_BUSINESS, Level.RESTART_NPU, "site:1"),
        ("8F000001", None, Level.SEPARATE, "site:1"),
    ]
    back = differences(new, base())
    assert [(each.before, each.after) for each in back.levels] == [
        (Level.RESTART_NPU, Level.RESTART_BUSINESS),
        (Level.SEPARATE, None),
    ]
    assert back.levels[1].place == "site:1"


def test_rules_rulings_and_suppressions() -> None:
    new = site("""unknown: {severity_unknown: SeparateNPU, by_severity: {minor: SubHealthFault}}
suppress: [{code: "80E18005", chips: [3, 0], reason: ticket, until: 2031-01-01}]
remove: {association: ["80E01801"]}
frequency: [{codes: ["80E18005"], window_s: 60, times: 9, handling: PreSeparateNPU, release_s: 61}]
duration: [{codes: ["80E01801"], fault_s: 30, recover_s: 0, handling: RestartBusiness}]
ports: [{code: "81B18603", by_down: {1: "020000002"}, always: "020001002"}]
""")
    found = differences(base(), new)
    assert found.levels == ()
    assert [(each.what, each.code, each.before, each.after) for each in found.others] == [
        (
            "frequency rule",
            "80E18005",
            "3 times in 86400 s -> ManuallySeparateNPU, never released",
            "9 times in 60 s -> PreSeparateNPU, released after 61 s",
        ),
        ("duration rule", "80E01801", None, "longer than 30 s -> RestartBusiness, recovered after 0 s"),
        (
            "association rule",
            "80E01801",
            "holds back 80C98009, 80CB8009 within 5 s, only while it has a duration rule",
            None,
        ),
        (
            "ports rule",
            "81B18603",
            "always 020001002, on all chips 020000002",
            "1 down -> 020000002, always 020001002",
        ),
        ("unlisted codes", "severity minor", "NotHandleFault", "SubHealthFault"),
        ("unlisted codes", "severity unknown", "NotHandleFault", "SeparateNPU"),
        ("suppression", "80E18005", None, "chips 0, 3 until 2031-01-01"),
    ]
    assert [each.after for each in differences(new, base()).others][-1] is None


def test_effects_on_chips() -> None:
    new = site('unknown: {severity_unknown: SeparateNPU}\nfaults: [{code: "81078603", level: SeparateNPU}]\n')
    active = [
        ActiveCode("chip 0", 0x80E01801, Severity.MAJOR),
        ActiveCode("chip 1", 0x80E01801, Severity.MAJOR),
        ActiveCode("chip 1", 0x8F000001, None),
        ActiveCode("chip 2", 0x8F000001, Severity.NOTICE),
        ActiveCode("chip 3", 0x81078603, None),
    ]
    assert effects(active, base(), new) == (
        Effect(
            "chip 1",
            (CodeEffect("8F000001", Level.NOT_HANDLE, Level.SEPARATE),),
            (Level.RESTART_BUSINESS, Level.SEPARATE),
            (Level.NORMAL, Level.NORMAL),
        ),
        Effect(
            "chip 3",
            (CodeEffect("81078603", Level.NOT_HANDLE, Level.SEPARATE),),
            (Level.NORMAL, Level.NORMAL),
            (Level.NOT_HANDLE, Level.SEPARATE),
        ),
    )
    assert effects(active, base(), base()) == ()
