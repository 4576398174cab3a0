"""The pretended board of a node: its BMC with the present alarms, and what is wrong with the BMC itself."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from nodeagent.core.alarms import Alarm, code_text
from nodeagent.core.clock import Clock
from nodeagent.core.errors import MockError
from nodeagent.mock.bmc import ALARM_SEVERITIES, MAX_ALARMS, BmcFault, BmcState, answer, is_hit

NO_SINGLE_DEVICE = 255
"""Device number of an alarm of no single device (3.2)."""


@dataclass(frozen=True, slots=True)
class StartAlarm:
    """An alarm as people describe it.

    subject: type byte of the device, None = the top byte of the code, as in all codes known (3.2). raised_s: Unix
    seconds, None = now.
    """

    code: int
    device_id: int = NO_SINGLE_DEVICE
    severity: int = ALARM_SEVERITIES["major"]
    subject: int | None = None
    raised_s: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What comes back from the BMC. data: completion code and payload, None = nothing ever; delay_ms: how late."""

    data: bytes | None
    delay_ms: int


class MockBoard:
    """Not thread-safe: the server calls it under its lock.

    state: of the BMC, without alarms that `alarms` has. present: whether there is a way to a BMC at all.
    """

    def __init__(self, clock: Clock, state: BmcState, alarms: tuple[StartAlarm, ...], *, present: bool) -> None:
        self.state = state
        self.present = present
        self._clock = clock
        self._met = 0
        self._listeners: list[Callable[[], None]] = []
        for alarm in alarms:
            self.raise_alarm(alarm)

    def add_listener(self, changed: Callable[[], None]) -> None:
        """Have `changed` called after every change of the state or of the presence."""
        self._listeners.append(changed)

    def raise_alarm(self, alarm: StartAlarm) -> None:
        """Let the BMC list an alarm, once more if it lists the same already. MockError when the list is full."""
        if len(self.state.alarms) >= MAX_ALARMS:
            raise MockError(f"the board has {MAX_ALARMS} alarms, which is the limit", "clear some first")
        subject = alarm.code >> 24 if alarm.subject is None else alarm.subject
        raised_s = self._clock.now().wall_ms // 1000 if alarm.raised_s is None else alarm.raised_s
        made = Alarm(alarm.code, raised_s, alarm.severity, subject, alarm.device_id)
        self._change(replace(self.state, alarms=(*self.state.alarms, made)))

    def clear_alarm(self, code: int, device_id: int | None) -> None:
        """Take alarms with this code off the list. device_id: only that device's, None = of every device.

        MockError when there is none.
        """
        kept = tuple(a for a in self.state.alarms if a.code != code or device_id not in (None, a.device_id))
        if len(kept) == len(self.state.alarms):
            where = "" if device_id is None else f" on device {device_id}"
            raise MockError(f"no alarm {code_text(code)} is present{where}", "`nodeagent mock state` lists them")
        self._change(replace(self.state, alarms=kept))

    def disturb(self, fault: BmcFault, *, page: int | None = None, present: bool = True) -> None:
        """Put this fault in place of the one before. page: another page size from now on, None = as it is."""
        self._met = 0
        self.present = present
        self._change(replace(self.state, fault=fault, page=page or self.state.page))

    def ask(self, netfn: int, command: int, data: bytes) -> Reply | None:
        """The reply to a command, counted as used by the fault; None when there is no BMC."""
        if not self.present:
            return None
        hit = is_hit(self.state, netfn, command, data)
        reply = Reply(answer(self.state, netfn, command, data), self.state.fault.delay_ms if hit else 0)
        if hit:
            self._met += 1
            if self._met == self.state.fault.times:
                self.disturb(self.state.fault.without_passing())
        return reply

    def report(self) -> dict[str, object]:
        """Plain JSON values. fault: what differs from good health."""
        healthy, fault = BmcFault(), self.state.fault
        names = [name for name in BmcFault.__dataclass_fields__ if getattr(fault, name) != getattr(healthy, name)]
        severities = {value: name for name, value in ALARM_SEVERITIES.items()}
        return {
            "present": self.present,
            "serial_number": self.state.serial,
            "manufacturer": self.state.vendor,
            "page": self.state.page,
            "fault": {name: getattr(fault, name) for name in names},
            "alarms": [
                {
                    "code": alarm.text,
                    "device_type": alarm.device_type,
                    "device_id": alarm.device_id,
                    "severity": severities[alarm.severity],
                    "subject": alarm.subject,
                    "raised_s": alarm.raised_s,
                }
                for alarm in self.state.alarms
            ],
        }

    def _change(self, state: BmcState) -> None:
        self.state = state
        for changed in list(self._listeners):
            changed()
