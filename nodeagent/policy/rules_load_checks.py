"""What the numbers and words of a rule may be, shared by our YAML and by upstream's JSON (chip-faults 5.1-5.3)."""

from nodeagent.core.levels import Level
from nodeagent.policy.rules import NEVER_S

FREQUENCY_LEVELS = tuple(level.text for level in Level if level is not Level.NORMAL)
"""Handlings of a frequency rule: the nine real levels."""
DURATION_LEVELS = tuple(text for text in FREQUENCY_LEVELS if text != Level.MANUALLY_SEPARATE.text)
"""Handlings of a duration rule; only a frequency rule separates by hand."""
RANGES = {
    "window_s": (60, 864_000),
    "release_s": (60, NEVER_S),
    "times": (1, 100),
    "fault_s": (0, 600),
    "recover_s": (0, 86_400),
}
"""Bounds of the numbers, inclusive; all but `times` are seconds."""
GRACE_RANGES = {
    "WaitProcessReadCMTime": (5, 90, 30),
    "WaitDeviceResetTime": (60, 180, 150),
    "WaitFaultSelfHealingTime": (1, 30, 15),
}
"""Bounds in seconds, inclusive, and the value that counts when there is none (chip-faults 5.1)."""

Violation = tuple[str, str]
"""Name of the field in our YAML, and what is wrong with its value; the caller puts its own name of it before."""


def frequency_violation(window_s: int, times: int, handling: str, release_s: int | None) -> Violation | None:
    """The first thing that is wrong with a frequency group, in the order in which upstream looks.

    window_s: 60..864000. times: 1..100. handling: a level by its exact text. release_s: 60..NEVER_S, None = not
    given, which means never and is allowed for ManuallySeparateNPU only.
    """
    if found := out_of_range("window_s", window_s):
        return found
    if release_s is not None and (found := out_of_range("release_s", release_s)):
        return found
    if found := out_of_range("times", times):
        return found
    if release_s is None and handling != Level.MANUALLY_SEPARATE.text:
        return "release_s", f"is not given, and only {Level.MANUALLY_SEPARATE.text} may last until an operator lifts it"
    return _not_among(handling, FREQUENCY_LEVELS)


def duration_violation(fault_s: int, recover_s: int, handling: str) -> Violation | None:
    """The first thing that is wrong with a duration group. fault_s: 0..600. recover_s: 0..86400."""
    return (
        out_of_range("fault_s", fault_s)
        or out_of_range("recover_s", recover_s)
        or _not_among(handling, DURATION_LEVELS)
    )


def out_of_range(field: str, value: int) -> Violation | None:
    """The field with a sentence, when the value lies outside its bounds."""
    low, high = RANGES[field]
    return None if low <= value <= high else (field, f"is {_short(value)}, which is not in {low}..{high}")


def grace_problem(name: str, value: int) -> str | None:
    """What is wrong with one value of GraceTolerance; such a value is carried through all the same."""
    low, high, default = GRACE_RANGES[name]
    if low <= value <= high:
        return None
    return f"{name} is {_short(value)}, which is not in {low}..{high}; its reader will use {default}"


def _not_among(handling: str, allowed: tuple[str, ...]) -> Violation | None:
    if handling in allowed:
        return None
    shown = handling if len(handling) <= 40 else handling[:40] + "..."
    return "handling", f"is {shown!r}, which is none of {', '.join(allowed)}"


def _short(value: int) -> str:
    # A number of thousands of digits cannot even be turned into text.
    return str(value) if abs(value) < 10**20 else "a number with more than 20 digits"
