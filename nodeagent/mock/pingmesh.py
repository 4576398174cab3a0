"""Resident pingmesh tasks of the pretended chips, HCCS and UB alike (native-abi 8, 9)."""

from dataclasses import dataclass

from nodeagent.core.clock import Clock

MAX_DESTINATIONS = 48


@dataclass(slots=True)
class PingTask:
    """A task: its destinations, when it began, and how often it pings."""

    source: bytes
    destinations: tuple[bytes, ...]
    packets: int
    interval_ms: int
    start_ms: int

    def rounds(self, now_ms: int) -> int:
        """Rounds finished by now."""
        return (now_ms - self.start_ms) // self.interval_ms


class PingmeshTasks:
    """Tasks by chip and task id. A reset of the chip ends its tasks without a trace (8.4)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[tuple[int, int], list[PingTask]] = {}

    def start(
        self,
        logic_id: int,
        task_id: int,
        destinations: tuple[bytes, ...],
        *,
        packets: int,
        interval_s: int,
        source: bytes = b"",
        add: bool = False,
    ) -> None:
        """Begin a task, in place of the one that runs under this id; `add` joins it as another source (9.2)."""
        task = PingTask(source, destinations, packets, interval_s * 1000, self._clock.now().mono_ms)
        old = self._tasks.get((logic_id, task_id), []) if add else []
        self._tasks[logic_id, task_id] = [*old, task]

    def stop(self, logic_id: int, task_id: int) -> None:
        """End a task; one that does not run is ended already."""
        self._tasks.pop((logic_id, task_id), None)

    def running(self, logic_id: int, task_id: int) -> bool:
        """Whether the task runs (state 1)."""
        return (logic_id, task_id) in self._tasks

    def tasks(self, logic_id: int, task_id: int) -> list[PingTask]:
        """The sources of a task, empty when it does not run."""
        return self._tasks.get((logic_id, task_id), [])

    def chip_was_reset(self, logic_id: int) -> None:
        """Forget the tasks of a chip."""
        self._tasks = {key: tasks for key, tasks in self._tasks.items() if key[0] != logic_id}
