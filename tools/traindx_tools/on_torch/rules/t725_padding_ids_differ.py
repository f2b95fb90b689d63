"""Rows are filled up with one id, and the loss or the embedding takes another one for padding.

The id of padding stands in several settings: the value that the collate function fills with, `ignore_index` of the
loss, `padding_idx` of the embedding. Nothing compares them. `kind`: "loss": targets are filled up with an id that the
loss does not ignore, while it was told another one; "embedding": inputs are filled up with another id than the
embedding's padding; "not-told": embedding and data agree, and the loss was told nothing: it trains on padding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "ids, targets and settings of the running program"
ROWS, SHARE, ONE, LENGTHS, STRAY = 48, 0.2, 0.95, 4, 0.001
_Ids = NDArray[np.float64]

RULE = Rule(
    id="T725",
    name="padding-ids-differ",
    title="Rows are filled up with another id than the loss or the embedding expects",
    severity=Severity.HIGH,
    sees="what rows of ids and targets are filled up with, ignore_index of the loss, padding_idx of the embedding",
    matters="padding is trained on like text, and a real id is ignored or held at zero",
    alike=("rows whose last symbol repeats by itself: its runs stand within rows too",
           "a loss without reduction or with weights: a mask may follow",),
    confirm=("print(batch[0][-5:], loss.ignore_index, embedding.padding_idx)",),
    thresholds={
        "rows": Threshold(ROWS, "rows that are filled up", "a chance of one in twenty errs in three of them at most"),
        "one": Threshold(ONE, "of them by the same id", "ends of texts differ"),
        "stray": Threshold(STRAY, "of the places before the fill hold it", "padding stands nowhere else"),
        "lengths": Threshold(LENGTHS, "different lengths of the fill", "rows of one length may end in one symbol"),
    },
)


@dataclass
class Filling:
    """What rows are filled up with, summed over the measured batches."""

    rows: int = 0
    filled: Counter[int] = field(default_factory=Counter)
    lengths: set[int] = field(default_factory=set)
    before: Counter[int] = field(default_factory=Counter)
    """Ids before the fill."""

    @property
    def filler(self) -> int | None:
        """The id that fills rows up and stands nowhere else; None where there is none."""
        total = sum(self.filled.values())
        if total < max(ROWS, SHARE * self.rows) or len(self.lengths) < LENGTHS:
            return None
        (value, count), = self.filled.most_common(1)
        strays = self.before[value]
        return value if count >= ONE * total and strays <= STRAY * max(1, self.before.total()) else None


@dataclass
class PaddingRoles:
    """One loss and the ids that went into its model. `ignored`: None where the loss was told nothing."""

    ids: Filling = field(default_factory=Filling)
    targets: Filling = field(default_factory=Filling)
    ignored: int | None = None
    embedding: int | None = None
    step: int = 0


def look(filling: Filling, rows: _Ids) -> None:
    """Adds one batch of ids, shape (B, T). A row is filled up where its last id stands twice at least, and not only."""
    for row in rows.astype(np.int64):
        other = np.flatnonzero(row != row[-1])
        end = int(other[-1]) + 1 if len(other) else 0
        if not end:
            continue
        filling.rows += 1
        if len(row) - end >= 2:
            filling.filled[int(row[-1])] += 1
            filling.lengths.add(len(row) - end)
        values, counts = np.unique(row[:end], return_counts=True)
        filling.before.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def check(seen: Sequence[PaddingRoles], rank: int = 0) -> Iterator[Finding]:
    """At most one finding for each."""
    for s in seen:
        target, ids = s.targets.filler, s.ids.filler
        if target is not None and s.ignored is not None and target != s.ignored:
            yield _finding(s, "loss", target, s.ignored, rank, (
                f"targets are filled up with id {target} and the loss ignores {s.ignored} (ignore_index): the fill is "
                f"trained on, and {s.targets.before[s.ignored]:,} places with id {s.ignored} are not"))
        elif ids is not None and s.embedding is not None and ids != s.embedding:
            yield _finding(s, "embedding", ids, s.embedding, rank, (
                f"inputs are filled up with id {ids} and padding_idx of the embedding is {s.embedding}, which stands "
                f"in {s.ids.before[s.embedding]:,} other places of the inputs"))
        elif target is not None and s.ignored is None and ids == target == s.embedding:
            yield _finding(s, "not-told", target, target, rank, (
                f"inputs and targets are filled up with id {target}, which is padding for the embedding too, and the "
                f"loss was told no ignore_index: it counts the fill"))


def _finding(s: PaddingRoles, kind: str, filler: int, told: int, rank: int, statement: str) -> Finding:
    rows = s.targets if kind != "embedding" else s.ids
    real = rows.before[told] > 0 and kind != "not-told"
    return RULE.finding(statement + f" ({sum(rows.filled.values()):,} of {rows.rows:,} rows that were looked at)",
                        Location(step=s.step, rank=rank), SOURCE, bearing=Bearing.CAUSE if real else Bearing.SIGN,
                        severity=None if real else Severity.MEDIUM,
                        measured={"kind": kind, "filler": filler, "told": told, "rows": rows.rows})
