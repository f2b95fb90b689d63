"""Weights that stay as they were drawn while others of their kind are trained.

A pattern over names, a predicate, a tree of labels or a list of adapted modules chooses what is trained. One that
misses some of its targets leaves a part of the model at its initialisation, in the midst of what is trained. What tells
it from a part that is frozen on purpose: the part was drawn as its trained siblings were (nothing was loaded into it),
most of the model is trained, and its input comes from trained weights, or siblings before it in a row of blocks are
trained.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST = 256
"""Values below which the spread of a draw is not known well enough."""
ERRORS, SLACK = 4.0, 0.02
"""Standard errors by which two draws of one distribution may differ, and what a few steps add to that."""
MOST_TRAINED = 0.5
"""Share of the values of all weights that has to be trained."""
FEWEST_IN_A_ROW = 3
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Weight:
    """One weight of the model. `mean` and `rms`: at the start of the training; `fed`: what comes into it was made by
    trained weights; `moved`: training changed it."""

    path: str
    shape: tuple[int, ...]
    mean: float
    rms: float
    moved: bool
    fed: bool = False

    @property
    def size(self) -> int:
        """Its values."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class LeftOut:
    """What stays as it was drawn. `kind`: "row" (of numbered blocks), or "role" (one place in all blocks).
    `siblings`: those of its kind that are trained; `share`: of the values of the model that is trained."""

    kind: str
    still: tuple[str, ...]
    siblings: tuple[str, ...]
    values: int
    share: float


def left_out(weights: Sequence[Weight]) -> LeftOut | None:
    """The weights that were forgotten; None where there are none, or where they may be frozen on purpose."""
    matrices = [w for w in weights if len(w.shape) >= 2 and w.size >= FEWEST]
    still, moved = [w for w in matrices if not w.moved], [w for w in matrices if w.moved]
    total = sum(w.size for w in matrices)
    share = sum(w.size for w in moved) / total if total else 0.0
    if not still or share < MOST_TRAINED:
        return None
    drawn = {w.path: _drawn_like(w, moved) for w in still}
    if not all(drawn.values()):
        return None
    rows = {w.path: _row(w, moved) for w in still}
    row = [w for w in still if _has_earlier(w, rows[w.path])]
    forgotten = row or [w for w in still if w.fed and not rows[w.path]]  # not the lower blocks of a row
    if not forgotten:
        return None
    like = tuple(dict.fromkeys(p for w in forgotten for p in drawn[w.path]))
    return LeftOut("row" if row else "role", tuple(w.path for w in forgotten), like,
                   sum(w.size for w in forgotten), share)


def _drawn_like(weight: Weight, moved: Sequence[Weight]) -> tuple[str, ...]:
    """The trained weights of the same shape that were drawn from the same distribution, as far as chance can tell; none
    where most of that shape were not: weights of a trained file differ from place to place."""
    error = ERRORS / math.sqrt(weight.size)
    if weight.rms <= 0 or abs(weight.mean) > (error + SLACK) * weight.rms:
        return ()
    alike = [m for m in moved if m.shape == weight.shape]
    near = [m.path for m in alike if abs(m.rms / weight.rms - 1) < error + SLACK]  # each errs by 1 / sqrt(2 n) at most
    return tuple(near) if 2 * len(near) >= len(alike) else ()


def _row(weight: Weight, moved: Sequence[Weight]) -> list[tuple[int, ...]]:
    """The numbers of the trained weights of the same place in other blocks."""
    pattern = _place(weight.path)[0]
    return [_place(m.path)[1] for m in moved if m.shape == weight.shape and _place(m.path)[0] == pattern]


def _has_earlier(weight: Weight, row: Sequence[tuple[int, ...]]) -> bool:
    """Whether weights of the same place in a block with a lower number are trained, in a row of blocks."""
    return len(row) + 1 >= FEWEST_IN_A_ROW and any(n < _place(weight.path)[1] for n in row)


def _place(path: str) -> tuple[str, tuple[int, ...]]:
    return _NUMBER.sub("#", path), tuple(int(n) for n in _NUMBER.findall(path))
