"""A mask does not agree with the ids that it masks in one file, and does in its siblings.

In each sibling a mask is 0 exactly where the ids are one value, the padding. In one file it is 1 on padding or 0 on
tokens: it was made for other rows, for another side of padding, or with another padding id.

Labels that a loss ignores are negative. Where siblings have them wherever the mask is 0, and perhaps elsewhere too
(prompts), a file that has others there trains on padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import of, percent, place, rows, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

AGREES = 0.999
DIFFERS = 0.01
FEWEST = 8
MOST_VALUES = 2**22
SIBLINGS = 2

RULE = Rule(
    id="D125",
    name="mask-and-ids",
    title="A mask does not agree with its ids in one file",
    severity=Severity.HIGH,
    sees="fields of 0 and 1 beside fields of ids of the same shape: where the one is 0 and the other is padding",
    matters="The model reads padding, or never sees some of the tokens.",
    alike=(
        "Masks that hide tokens on purpose: they do in all files.",
        "Labels that are ignored where the mask is 1 as well, such as those of prompts.",
    ),
    confirm=("Print ids and mask of the named rows.",),
    thresholds={
        "agrees": Threshold(AGREES, "share of the places of each sibling", "the relation is exact there"),
        "differs": Threshold(DIFFERS, "share of the places of the file", "single rows are no file"),
        "rows": Threshold(FEWEST, "rows that differ", "a handful is no file"),
        "siblings": Threshold(SIBLINGS, "files", "whose labels are ignored wherever the mask is 0"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each file whose mask breaks the relation of the others."""
    for data in view.sets:
        masks = [n for n in data.fields if _all_of(data, n, _may_be_mask)]
        others = [n for n in data.fields if _all_of(data, n, _may_be_ids)]
        fitting = [
            (having, mask, ids)
            for mask, ids in product(masks, others)
            if mask != ids
            for having in ([s for s in data.shards if mask in s.columns and ids in s.columns and s.rows],)
            if len(having) >= 2 and all(_fit(s.columns[mask], s.columns[ids]) for s in having)
        ]
        told: set[tuple[str, str]] = set()
        for having, mask, ids in fitting:
            for finding in _of_fields(having, mask, ids):
                told |= {(finding.source, mask), (finding.source, ids)}
                yield finding
        for having, mask, labels in fitting:
            for finding in _of_ignored(having, mask, labels):
                if told.isdisjoint({(finding.source, mask), (finding.source, labels)}):
                    told.add((finding.source, labels))
                    yield finding


def _all_of(data: DataSet, name: str, fits: Callable[[Column], bool]) -> bool:
    """Whether a field is such in every shard that has it: asked once a field, since pairs are many."""
    return all(fits(s.columns[name]) for s in data.shards if name in s.columns and s.rows)


def _may_be_ids(column: Column) -> bool:
    """Whole numbers of which a row holds several."""
    many = column.offsets is not None or (len(column.row_shape) == 1 and column.row_shape[0] >= 4)
    if not (many and column.is_integer and column.values.dtype.kind in "iu" and column.values.size):
        return False
    return int(column.values.reshape(-1)[:MOST_VALUES].max()) > 1


def _may_be_mask(column: Column) -> bool:
    """0 and 1, several in a row."""
    many = column.offsets is not None or (len(column.row_shape) == 1 and column.row_shape[0] >= 4)
    if not (many and column.is_integer and column.values.size):
        return False
    some = column.values.reshape(-1)[:MOST_VALUES]
    return int(some.min()) >= 0 and int(some.max()) <= 1 and float(some.mean()) > 0.0


def _fit(mask: Column, ids: Column) -> bool:
    """Whether one may be the mask of the other: the same places."""
    if mask.values.shape != ids.values.shape or (mask.offsets is None) != (ids.offsets is None):
        return False
    return mask.offsets is None or ids.offsets is None or np.array_equal(mask.offsets, ids.offsets)


def _wrong(mask: Column, ids: Column, padding: int) -> Array:
    """bool, flat: places where the mask is not "this is no padding"."""
    return np.asarray((mask.values.reshape(-1) != 0) != (ids.values.reshape(-1) != padding))


def _padding(mask: Column, ids: Column) -> int | None:
    """The one id of all places where the mask is 0, None where there are several or few."""
    hidden = ids.values.reshape(-1)[mask.values.reshape(-1) == 0]
    if len(hidden) < FEWEST:
        return None
    usual = int(np.median(hidden))
    return usual if float((hidden == usual).mean()) >= AGREES else None


def _of_fields(having: list[Shard], mask: str, ids: str) -> Iterator[Finding]:
    found = [_padding(s.columns[mask], s.columns[ids]) for s in having]
    known = [p for p in found if p is not None]
    if not known:
        return
    padding = max(set(known), key=known.count)
    shares = [float(_wrong(s.columns[mask], s.columns[ids], padding).mean()) for s in having]
    sound = [k for k, share in enumerate(shares) if share <= 1 - AGREES]
    odd = [k for k, share in enumerate(shares) if share >= DIFFERS]
    if len(odd) > max(1, len(having) // 4) or len(sound) < len(having) - len(odd):
        return
    for k in odd:
        yield from _finding(having[k], mask, ids, padding, len(sound))


def _rows_of(column: Column, wrong: Array) -> Array:
    """int64: the rows that have one of the places, bool and flat."""
    if column.offsets is None:
        return np.flatnonzero(wrong.reshape(column.rows, -1).any(axis=1))
    places = np.concatenate([[0], np.cumsum(wrong)])
    return np.flatnonzero(np.diff(places[column.offsets]))


def _finding(shard: Shard, mask: str, ids: str, padding: int, siblings: int) -> Iterator[Finding]:
    column = shard.columns[mask]
    wrong = _wrong(column, shard.columns[ids], padding)
    shown = wrong & (column.values.reshape(-1) != 0)
    bad = _rows_of(column, wrong)
    if len(bad) < FEWEST:
        return
    yield RULE.finding(
        f"{of(mask, shard)} does not agree with {ids}: it is 1 on {int(shown.sum()):,} places of padding "
        f"(id {padding}) and 0 on {int(wrong.sum() - shown.sum()):,} of tokens ({percent(float(wrong.mean()))} of all; "
        f"{rows(shard, bad)}); in the other {siblings} file{'s' * (siblings != 1)} it is 0 exactly on the padding",
        place(shard, mask),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={
            "kind": "mask",
            "field": mask,
            "ids": ids,
            "padding": padding,
            "share": float(wrong.mean()),
            "shard": short(shard),
            "rows": tuple(int(i) for i in bad[:20]),
        },
    )


def _of_ignored(having: list[Shard], mask: str, labels: str) -> Iterator[Finding]:
    """Files with labels that count where the mask is 0: in their siblings all of those are ignored."""
    found = [_padding(s.columns[mask], s.columns[labels]) for s in having]
    known = [p for p in found if p is not None and p < 0]
    if len(known) < SIBLINGS:
        return
    ignored = max(set(known), key=known.count)
    counting = [_counting(s.columns[mask], s.columns[labels], ignored) for s in having]
    hidden = [max(1, int((s.columns[mask].values == 0).sum())) for s in having]
    shares = [int(c.sum()) / h for c, h in zip(counting, hidden, strict=True)]
    sound = [k for k, share in enumerate(shares) if share <= 1 - AGREES]
    odd = [k for k, share in enumerate(shares) if share >= DIFFERS]
    if len(odd) > max(1, len(having) // 4) or len(sound) < len(having) - len(odd):
        return
    for k in odd:
        bad = _rows_of(having[k].columns[mask], counting[k])
        if len(bad) >= FEWEST:
            yield _ignored_finding(having[k], mask, labels, ignored, shares[k], bad, len(sound))


def _counting(mask: Column, labels: Column, ignored: int) -> Array:
    """bool, flat: places where the mask is 0 and the label is not ignored."""
    return np.asarray((mask.values.reshape(-1) == 0) & (labels.values.reshape(-1) != ignored))


def _ignored_finding(shard: Shard, mask: str, labels: str, ignored: int, share: float, bad: Array,
                     siblings: int) -> Finding:
    column = shard.columns[labels]
    others = column.values.reshape(-1)[_counting(shard.columns[mask], column, ignored)]
    kinds, counts = np.unique(others, return_counts=True)
    return RULE.finding(
        f"{of(labels, shard)} is not ignored ({ignored}) on {len(others):,} places where {mask} is 0 "
        f"({percent(share)} of those; most often it is {int(kinds[counts.argmax()])} there; {rows(shard, bad)}); in "
        f"the other {siblings} files it is {ignored} wherever {mask} is 0",
        place(shard, labels),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={
            "kind": "ignored",
            "field": labels,
            "mask": mask,
            "ignored": ignored,
            "share": share,
            "shard": short(shard),
            "rows": tuple(int(i) for i in bad[:20]),
        },
    )
