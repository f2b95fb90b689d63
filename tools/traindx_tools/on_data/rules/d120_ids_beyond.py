"""Token ids reach beyond the vocabulary, or sequences beyond the positions, that the configuration names.

Only fields of ids are compared: whole numbers in sequences whose bulk lies within the vocabulary and uses much of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import of, place, rows
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import Hints, View
from traindx_tools.rules import Rule, Threshold

BULK = 0.95
USED = 0.05

RULE = Rule(
    id="D120",
    name="ids-beyond",
    title="Ids beyond the vocabulary, or sequences beyond the positions",
    severity=Severity.HIGH,
    sees="whole numbers in sequences, beside the sizes that configuration and code name",
    matters="The lookup fails: on a device as an assert whose traceback points elsewhere.",
    alike=("Sequences that the loader cuts.", "Whole numbers that are no ids of this vocabulary."),
    confirm=("Print the named rows.", "Compare the tokenizer's length with the model's table."),
    thresholds={
        "bulk": Threshold(BULK, "share of ids within the vocabulary", "or the field is not of this vocabulary"),
        "used": Threshold(USED, "of the vocabulary that the ids reach up to", "or it is a field of few kinds"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard and field."""
    for data in view.sets:
        for shard in data.shards:
            for name, column in shard.columns.items():
                if column.is_integer and _is_sequence(column):
                    yield from _ids(shard, name, column, view.hints)
                    yield from _positions(shard, name, column, view.hints)


def _is_sequence(column: Column) -> bool:
    return (
        column.kind == "sequence"
        or (column.values.ndim == 2 and column.values.shape[1] >= 4)
        or column.name == "tokens"
    )


def _ids(shard: Shard, name: str, column: Column, hints: Hints) -> Iterator[Finding]:
    size = hints.vocabulary
    if size is None or not column.values.size:
        return
    values = column.values
    beyond = values >= size
    count = int(beyond.sum())
    if not count or count > (1 - BULK) * values.size or values[~beyond].max(initial=0) < USED * size:
        return
    where = np.unique(_rows(column, np.flatnonzero(beyond.reshape(-1))))
    yield RULE.finding(
        f"{of(name, shard)} holds {count:,} ids from {size} on, up to {int(values.max())}, and "
        f"{hints.told_by.get('vocabulary', 'the configuration')} names a vocabulary of {size}: {rows(shard, where)}",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={
            "field": name,
            "count": count,
            "highest": int(values.max()),
            "vocabulary": size,
            "kind": "vocabulary",
            "rows": tuple(int(i) for i in where[:20]),
        },
    )


def _rows(column: Column, flat: Array) -> Array:
    if column.offsets is not None:
        return np.searchsorted(column.offsets, flat, side="right") - 1
    return flat // max(1, int(np.prod(column.row_shape)))


def _positions(shard: Shard, name: str, column: Column, hints: Hints) -> Iterator[Finding]:
    size = hints.positions
    if size is None or column.name == "tokens":
        return
    lengths = column.lengths if column.offsets is not None else np.full(column.rows, column.values.shape[1])
    where = np.flatnonzero(lengths > size)
    if len(where) and len(where) < 0.5 * column.rows:
        yield RULE.finding(
            f"{of(name, shard)} has {len(where):,} rows longer than the {size} positions that "
            f"{hints.told_by.get('positions', 'the configuration')} names (up to {int(lengths.max())}): "
            f"{rows(shard, where)}",
            place(shard, name),
            shard.name,
            bearing=Bearing.SIGN,
            severity=Severity.MEDIUM,
            measured={
                "field": name,
                "rows": tuple(int(i) for i in where[:20]),
                "longest": int(lengths.max()),
                "positions": size,
                "kind": "positions",
            },
        )
