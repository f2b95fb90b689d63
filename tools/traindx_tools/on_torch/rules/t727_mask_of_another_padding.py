"""Rows are filled up with one id, and the mask that the model uses is not that of the fill.

The id of padding stands in the collate function and again where the mask is made. `kind`: "constant": the model
compares its ids with one number to know the padding, and the rows are filled up with another one; "none": a mask among
the arguments hides nothing in rows that are filled up; "elsewhere": it hides other places than the fill (a sign: a mask
may be there for something else). Told only where cutting the fill off changes the output of the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rows.filling import Filling, look
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: padding masks"
CHANGE, AGREE, HIDES = 0.05, 0.98, 0.02
_Ids = NDArray[np.int64]

RULE = Rule(
    id="T727",
    name="mask-of-another-padding",
    title="The mask of the padding is not that of what rows are filled up with",
    severity=Severity.HIGH,
    sees="what rows of ids are filled up with, masks of their shape among the arguments, the constants that a copy of "
         "the model compares its ids with, and its output for one row with the fill and without",
    matters="padding is attended to and averaged over, and real ids may be hidden",
    alike=("a causal model: what is behind a row changes nothing in it, and nothing is said",
           "ids that are compared with an end or a mask token: beside the right padding",
           "masks for something else: a sign at most"),
    confirm=("print((ids == fill).sum(), (~mask).sum(), (mask & (ids == fill)).sum())",),
    thresholds={"change": Threshold(CHANGE, "standard deviations of the output", "rounding is below 0.001"),
                "agree": Threshold(AGREE, "of the places of a mask that is the padding's", "an end may belong to it"),
                "hides": Threshold(HIDES, "of the fill that a mask hides, at most", "else it is nearly right")},
)


@dataclass
class MaskSeen:
    """One mask argument: places in and outside of runs at the ends of rows, by its value (0, 1)."""

    fill: list[int] = field(default_factory=lambda: [0, 0])
    real: list[int] = field(default_factory=lambda: [0, 0])
    is_bool: bool = False

    def add(self, ids: _Ids, mask: _Ids, filler: int) -> None:
        """One batch of rows, shape (B, T)."""
        behind = np.flip(np.logical_and.accumulate(np.flip(ids == filler, 1), axis=1), 1)
        for value in (0, 1):
            self.fill[value] += int((behind & (mask == value)).sum())
            self.real[value] += int((~behind & (mask == value)).sum())

    @property
    def is_paddings(self) -> bool:
        """Whether it tells the fill from the rest, either way round."""
        right = max(self.fill[0] + self.real[1], self.fill[1] + self.real[0])
        return right >= AGREE * max(1, sum(self.fill) + sum(self.real))

    @property
    def hides_nothing(self) -> bool:
        """Whether it is the same everywhere: true, or false where that means that nothing is padding."""
        ones, zeros = self.fill[1] + self.real[1], self.fill[0] + self.real[0]
        return (ones > 0 and zeros == 0) or (self.is_bool and zeros > 0 and ones == 0)


@dataclass
class Masks:
    """One model. `batches`: rows of ids with the masks beside them; the rest is of a copy."""

    model: str
    argument: str
    filling: Filling = field(default_factory=Filling)
    batches: list[tuple[_Ids, dict[str, _Ids]]] = field(default_factory=list)
    bools: set[str] = field(default_factory=set)
    compared: frozenset[int] = frozenset()
    change: float = 0.0
    step: int = 0

    def look(self, ids: _Ids, masks: dict[str, _Ids]) -> None:
        """One batch."""
        look(self.filling, ids.astype(np.float64))
        self.batches.append((ids, masks))

    def masks(self, filler: int) -> dict[str, MaskSeen]:
        """The masks by argument, over all batches."""
        found: dict[str, MaskSeen] = {}
        for ids, masks in self.batches:
            for name, mask in masks.items():
                found.setdefault(name, MaskSeen(is_bool=name in self.bools)).add(ids, mask, filler)
        return found


def check(seen: Sequence[Masks], rank: int = 0) -> Iterator[Finding]:
    """At most one finding for each model."""
    for s in seen:
        filler = s.filling.filler
        if filler is None or s.change < CHANGE:
            continue
        masks = s.masks(filler)
        if filler in s.compared or any(m.is_paddings for m in masks.values()):
            continue
        empty = next((n for n, m in masks.items() if m.hides_nothing), None)
        other = next((n for n, m in masks.items() if not m.hides_nothing and min(m.fill) <= HIDES * sum(m.fill)), None)
        if s.compared:
            named = ", ".join(map(str, sorted(s.compared)[:4]))
            yield _finding(s, "constant", filler, rank, f"the model compares them with {named} alone")
        elif empty is not None:
            yield _finding(s, "none", filler, rank, f"`{empty}` hides nothing")
        elif other is not None:
            yield _finding(s, "elsewhere", filler, rank, f"`{other}` hides other places, and not the fill")


def _finding(s: Masks, kind: str, filler: int, rank: int, what: str) -> Finding:
    sure = kind != "elsewhere"
    return RULE.finding(
        f"rows of `{s.argument}` are filled up with id {filler} ({sum(s.filling.filled.values()):,} of "
        f"{s.filling.rows:,} rows that were looked at) and {what}: without the fill the output of {s.model} for the "
        f"rest changes by up to {s.change:.3g} standard deviations",
        Location(module=s.model, step=float(s.step), rank=rank), SOURCE,
        bearing=Bearing.CAUSE if sure else Bearing.SIGN, severity=None if sure else Severity.MEDIUM,
        measured={"kind": kind, "filler": filler, "compared": tuple(sorted(s.compared)[:8]),
                  "change": round(s.change, 4)})
