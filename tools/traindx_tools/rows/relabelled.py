"""Labels that are answered with one other class each: the two sides number their classes otherwise.

A model that is wrong confuses classes; one that is right by another numbering answers each label with one class,
another one for each label. The labels, or what the weights were trained on, have another order of the classes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traindx_tools.rows.profile import Floats

ROWS, EACH = 60, 5
"""Rows below which nothing is said, and rows of a label that counts."""
CERTAIN, OWN = 0.7, 0.25
"""Share of a label's rows that one other class gets, and the share that its own gets at most."""
HITS, GAIN = 0.6, 0.25
"""Share of the rows that are right after renaming, and by how much more that is than before."""
MOST_CLASSES = 1000
PASSES = 3
"""Evaluations that are kept besides the first one."""


@dataclass(frozen=True)
class Relabelled:
    """`pairs`: (label, the class that it is answered with); shares of the rows that are right before and after."""

    pairs: tuple[tuple[int, int], ...]
    rows: int
    classes: int
    before: float
    after: float

    @property
    def said(self) -> str:
        """The first pairs in words."""
        shown = ", ".join(f"{a} as {b}" for a, b in self.pairs[:5])
        return f"{shown}, ..." if len(self.pairs) > 5 else shown


def relabelled(label: Floats, answer: Floats) -> Relabelled | None:
    """Whether a renaming of classes explains the answers; `label` and `answer` of shape (rows,), NaN where unknown."""
    known = np.isfinite(label) & np.isfinite(answer)
    y, a = label[known].astype(np.int64), answer[known].astype(np.int64)
    if len(y) < ROWS:
        return None
    kinds: NDArray[np.int64] = np.unique(y)
    if not 2 <= len(kinds) <= MOST_CLASSES:
        return None
    moved, right = [], 0
    for kind in kinds:
        own = a[y == kind]
        answers, counts = np.unique(own, return_counts=True)
        top = int(answers[counts.argmax()])
        certain = len(own) >= EACH and counts.max() >= CERTAIN * len(own) and (own == kind).mean() <= OWN
        if certain and top != kind:
            moved.append((int(kind), top))
            right += int(counts.max())
        else:
            right += int((own == kind).sum())
    before, after = float((y == a).mean()), right / len(y)
    if len(moved) < 2 or len({b for _, b in moved}) < len(moved) or after < HITS or after - before < GAIN:
        return None
    return Relabelled(tuple(moved), len(y), len(kinds), before, after)


@dataclass
class Answered:
    """Labels and answers of the first evaluation and of the last ones, by the step at which they were."""

    first: list[tuple[Floats, Floats]] = field(default_factory=list)
    first_step: int | None = None
    last: deque[tuple[int, Floats, Floats]] = field(default_factory=lambda: deque(maxlen=500))

    def take(self, step: int, label: Floats, answer: Floats) -> None:
        """One evaluated batch."""
        self.first_step = step if self.first_step is None else self.first_step
        if step == self.first_step and len(self.first) < 500:
            self.first.append((label, answer))
        self.last.append((step, label, answer))

    def at_first(self) -> Relabelled | None:
        """What the first evaluation shows."""
        return _joined(self.first)

    def at_last(self) -> Relabelled | None:
        """What the last evaluation shows; or two of those before it, where it was one of several data sets at once."""
        steps = list(dict.fromkeys(s for s, _, _ in reversed(self.last)))[:PASSES + 1]
        found = [_joined([(y, a) for s, y, a in self.last if s == step]) for step in steps]
        if not found or found[0] is not None:
            return found[0] if found else None
        earlier = [f for f in found if f is not None]
        return earlier[0] if len(earlier) >= 2 else None


def _joined(batches: list[tuple[Floats, Floats]]) -> Relabelled | None:
    if not batches:
        return None
    return relabelled(np.concatenate([y for y, _ in batches]), np.concatenate([a for _, a in batches]))
