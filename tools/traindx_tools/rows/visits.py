"""What of a row changes from one visit to the next: it should be the same row."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from traindx_tools.rows.book import VISITS, RowsSeen

ROWS, TIMES, ALIKE, REDRAWN = 100, 2.0, 0.9, 0.6


@dataclass(frozen=True)
class Change:
    """`kind`: "scaled-each-visit" (`ratio`: times of the first visit's spread at visit `visit`) or "labels-redrawn"
    (`ratio`: share of visits with the same values and another label)."""

    kind: str
    ratio: float
    visit: int
    rows: int
    expected: float = 0.0


def changes(seen: RowsSeen) -> list[Change]:
    """What is more than augmentation: a scale that moves one way for nearly all rows, labels that are drawn anew."""
    if not seen.numbered:
        return []
    return [c for c in (_scaled(seen), _redrawn(seen)) if c is not None]


def _scaled(seen: RowsSeen) -> Change | None:
    """Spreads that grow or shrink from visit to visit, each time, in nearly all rows."""
    logs = np.log(np.where(seen.spread > 0, seen.spread, np.nan))
    enough = np.isfinite(logs).sum(0) >= ROWS
    if enough[:3].sum() < 3:
        return None
    columns = np.flatnonzero(enough)
    steps = np.stack([logs[:, b] - logs[:, a] for a, b in itertools.pairwise(columns)], 1)
    signs = np.nansum(np.sign(steps), 1) / np.maximum(1, np.isfinite(steps).sum(1))
    total = logs[:, columns[-1]] - logs[:, 0]
    middle = float(np.nanmedian(total))
    moved = np.isfinite(total)
    one_way = (np.sign(total[moved]) == np.sign(middle)) & (np.abs(signs[moved]) > 0.99)
    if abs(middle) < np.log(TIMES) or one_way.mean() < ALIKE:
        return None
    return Change("scaled-each-visit", float(np.exp(middle)), VISITS[int(columns[-1])], int(moved.sum()))


def _redrawn(seen: RowsSeen) -> Change | None:
    """Labels of classes that differ from the first visit's as often as independent draws would."""
    again = int(seen.unchanged.sum())
    known = seen.label[np.isfinite(seen.label)]
    if seen.kind != "classes" or again < ROWS or not len(known):
        return None
    share = np.unique(known, return_counts=True)[1] / len(known)
    expected = 1.0 - float((share**2).sum())
    seen_share = float(seen.relabelled.sum()) / again
    if expected < 0.1 or seen_share < REDRAWN * expected:
        return None
    return Change("labels-redrawn", seen_share, int(seen.visits.max()), int((seen.unchanged > 0).sum()), expected)
