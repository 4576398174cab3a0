"""Many tasks on few threads: each has a moment at which it is due, and never runs twice at the same time."""

import heapq
import threading
from collections.abc import Callable

from nodeagent.core.clock import monotonic_s

Turn = Callable[[], float | None]
"""One pass of a task; returns the seconds until it is due again, None = not before somebody pokes it."""


class Task:
    """What a lane knows of one task; guarded by the lane. due_s: monotonic, None = waits to be poked."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.due_s: float | None = None
        self.running = False
        self.poked = False


class Lane:
    """A queue of tasks by time, with `workers` threads. now_s: seconds of a clock that never goes back.

    A turn that raises ends its task; the first such error is kept in `error`.
    """

    def __init__(self, workers: int, now_s: Callable[[], float] = monotonic_s) -> None:
        self._now_s = now_s
        self._changed = threading.Condition()
        self._queue: list[tuple[float, int, Task]] = []
        self._serial = 0
        self._stopping = False
        self.error: Exception | None = None
        self._threads = [threading.Thread(target=self._work, name=f"lane-{n}", daemon=True) for n in range(workers)]
        for thread in self._threads:
            thread.start()

    def poke(self, task: Task) -> None:
        """Make a task due now; from any thread. One that runs at this moment is run once more after it."""
        with self._changed:
            if task.running:
                task.poked = True
            else:
                self._schedule(task, self._now_s())

    def close(self) -> None:
        """Finish the turns that run, begin no other."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _schedule(self, task: Task, due_s: float) -> None:
        """An earlier entry of the task stays in the queue and is passed over, since it has another moment."""
        task.due_s = due_s
        self._serial += 1
        heapq.heappush(self._queue, (due_s, self._serial, task))
        self._changed.notify()

    def _work(self) -> None:
        while (task := self._next()) is not None:
            wait_s: float | None = None
            try:
                wait_s = task.turn()
            except Exception as error:  # noqa: BLE001 - told by whoever owns the lane
                self.error = self.error or error
            with self._changed:
                task.running = False
                if task.poked:
                    wait_s, task.poked = 0.0, False
                if wait_s is not None:
                    self._schedule(task, self._now_s() + wait_s)

    def _next(self) -> Task | None:
        """The next task that is due, taken out of the queue; waits for it. None when the lane is closed."""
        with self._changed:
            while not self._stopping:
                while self._queue and self._queue[0][0] != self._queue[0][2].due_s:
                    heapq.heappop(self._queue)
                left_s = self._queue[0][0] - self._now_s() if self._queue else None
                if left_s is not None and left_s <= 0:
                    task = heapq.heappop(self._queue)[2]
                    task.due_s, task.running = None, True
                    return task
                self._changed.wait(left_s)
        return None
