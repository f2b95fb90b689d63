"""Host times of steps in a fixed space: how long each took and how long it waited for its batch."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

KEPT = 2048
"""Steps that are kept."""


@dataclass
class StepClock:
    """Seconds a step (from the end of one optimizer step to the end of the next) and seconds in the DataLoader."""

    steps: deque[int] = field(default_factory=lambda: deque(maxlen=KEPT))
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    waits: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    _last: float | None = None
    _wait: float = 0.0

    def waited(self, seconds: float) -> None:
        """A DataLoader took this long to hand out a batch."""
        self._wait += seconds

    def stepped(self, step: int, now: float) -> None:
        """An optimizer step is complete at host time `now`."""
        if self._last is not None:
            self.steps.append(step)
            self.seconds.append(now - self._last)
            self.waits.append(min(self._wait, now - self._last))
        self._last, self._wait = now, 0.0

    def arrays(self, skip: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """(step, seconds, wait) after the first `skip` steps of the run, which warm up."""
        steps = np.asarray(self.steps, dtype=np.int64)
        kept = steps > skip
        return steps[kept], np.asarray(self.seconds)[kept], np.asarray(self.waits)[kept]
