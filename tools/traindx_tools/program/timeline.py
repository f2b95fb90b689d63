"""The moments of a training run, counted: what happened how often, from which line, and in what order within a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

LONGEST_WINDOW = 64
"""Moments of one window that are kept in order: longer ones (an evaluation between two steps) are cut."""
MOST_WINDOWS = 64
"""Different orders that are counted; those that come later are counted together."""


class Moment(str, Enum):
    """What can happen; the value is what a text calls it."""

    BATCH = "batch"
    FORWARD = "forward"
    FORWARD_IN_EVAL = "forward (eval mode)"
    EVALUATION = "evaluation (eval mode)"
    EVALUATION_IN_TRAIN = "evaluation (train mode)"
    LOSS = "loss"
    BACKWARD = "backward"
    CLEAR = "clear"
    CLIP = "clip"
    STEP = "step"
    SCHEDULE = "schedule"
    LOAD = "load"
    SAVE = "save"
    UNSCALE = "unscale"
    UPDATE = "update of the loss scale"
    MODE = "mode"
    READ = "mode read"
    MADE = "optimizer made"
    YIELD = "yield"
    WRITTEN = "gradients written by hand"
    HANDED = "handed to unknown code"
    PARAMETERS = "parameters changed"
    KEPT = "kept"
    EMPTIED = "emptied"
    HOOKED = "hook registered"
    UNHOOKED = "hook removed"
    GRADIENT = "gradient asked for"


@dataclass
class Course:
    """All moments of one kind."""

    count: int = 0
    first_step: int = 0
    """Optimizer steps that were complete when it happened first."""
    last_step: int = 0
    lines: Counter[str] = field(default_factory=Counter)
    """`file.py:12` of the calls whose line was noted (the first ones)."""


@dataclass
class Timeline:
    """Moments by kind, and the orders in which they follow each other from one optimizer step to the next."""

    courses: dict[Moment, Course] = field(default_factory=dict)
    windows: Counter[tuple[Moment, ...]] = field(default_factory=Counter)
    _open: list[Moment] = field(default_factory=list)

    def note(self, moment: Moment, step: int, line: str | None = None) -> None:
        """One moment. `step`: optimizer steps that are complete."""
        course = self.courses.get(moment)
        if course is None:
            course = self.courses[moment] = Course(first_step=step)
        course.count += 1
        course.last_step = step
        if line is not None:
            course.lines[line] += 1
        if len(self._open) < LONGEST_WINDOW and (not self._open or self._open[-1] is not moment or _counts(moment)):
            self._open.append(moment)
        if moment is Moment.STEP:
            self.close()

    def close(self) -> None:
        """The window ends with an optimizer step, or with the program."""
        if self._open:
            window = tuple(self._open)
            if window in self.windows or len(self.windows) < MOST_WINDOWS:
                self.windows[window] += 1
            self._open.clear()

    def count(self, *moments: Moment) -> int:
        """How often these happened."""
        return sum(self.courses[m].count for m in moments if m in self.courses)

    def usual(self, most: int = 2) -> Iterator[tuple[str, int]]:
        """The commonest windows, written out, with their number."""
        for window, count in self.windows.most_common(most):
            yield written(window), count


def written(window: tuple[Moment, ...]) -> str:
    """`batch > 4 x (forward > loss > backward) > step`: repetitions within a window are counted."""
    parts: list[str] = []
    at = 0
    while at < len(window):
        length, times = _repeated(window, at)
        text = " > ".join(m.value for m in window[at:at + length])
        parts.append(f"{times} x ({text})" if times > 1 else text)
        at += length * times
    return " > ".join(parts)


def _repeated(window: tuple[Moment, ...], at: int) -> tuple[int, int]:
    """The cycle that begins here and covers most, as (its length, its repetitions); (1, 1) where there is none."""
    best = 1, 1
    for length in range(1, (len(window) - at) // 2 + 1):
        times = 1
        while window[at + times * length: at + (times + 1) * length] == window[at: at + length]:
            times += 1
        if times > 1 and length * times > best[0] * best[1]:
            best = length, times
    return best


def _counts(moment: Moment) -> bool:
    """Whether several in a row are worth being told apart from one."""
    return moment in (Moment.BACKWARD, Moment.BATCH, Moment.SCHEDULE)
