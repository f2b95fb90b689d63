"""Two epochs have the same order of samples: the shuffle was drawn once, or from the same seed each time.

Of stored orders (what a sampler wrote down: a file or a field an epoch, a row an epoch, a table of epoch and sample)
those that are permutations and shuffled are compared. Two drawn orders of `n` samples agree with a chance of 1/n!.
Orders that are told by name to be of one epoch, such as those of several ranks, are not compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import listed, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 16
FORWARD = 0.5
MOST_ORDERS = 1_000
_EPOCH = re.compile(r"(?:epoch|pass)s?[_\- ]?(\d+)", re.IGNORECASE)
_ORDER = re.compile(r"epoch|order|perm|sampl|shuffl|indic|index", re.IGNORECASE)

RULE = Rule(
    id="D135",
    name="same-order",
    title="Two epochs have the same order of samples",
    severity=Severity.MEDIUM,
    sees="stored orders of samples that are permutations, epoch by epoch",
    matters="The same samples meet in the same batches again and again: less noise than shuffling is meant to give.",
    alike=("Samples in their own order: no shuffle was meant.", "Orders of several ranks in one epoch."),
    confirm=("Look whether the sampler's `set_epoch` is called, and whether its seed is set again each epoch.",),
    thresholds={
        "fewest": Threshold(FEWEST, "samples", "16! orders: two agree by chance once in 2e13"),
        "forward": Threshold(FORWARD, "of the steps lead to the next sample", "above, the order is no shuffle"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all pairs of orders"),
    },
)


@dataclass(frozen=True)
class Order:
    """The samples of one epoch."""

    epoch: int
    told: str
    samples: Array


def check(view: View) -> Iterator[Finding]:
    """A finding for each set whose epochs share an order."""
    for data in view.sets:
        for shard, field, orders in _stored(data):
            yield from _judged(shard, field, orders[:MOST_ORDERS])


def _stored(data: DataSet) -> Iterator[tuple[Shard, str, list[Order]]]:
    """Where orders lie: in files or fields that are called by epoch, in rows, or below each other in a table."""
    by_name: list[tuple[Shard, str, Order]] = []
    for shard in data.shards:
        for name, column in shard.columns.items():
            said = _EPOCH.search(name) or _EPOCH.search(short(shard))
            if said and _single(column):
                by_name.append((shard, name, Order(int(said[1]), f"epoch {said[1]}", np.asarray(column.values))))
            elif _ORDER.search(name) or _ORDER.search(short(shard)):
                yield shard, name, list(_rows(column))
        yield from _table(shard)
    epochs = [o.epoch for _, _, o in by_name]
    if len(set(epochs)) == len(epochs) > 1:
        yield by_name[0][0], by_name[0][1], [o for _, _, o in sorted(by_name, key=lambda b: b[2].epoch)]


def _single(column: Column) -> bool:
    return column.kind == "number" and not column.row_shape and column.values.dtype.kind in "iu"


def _rows(column: Column) -> Iterator[Order]:
    """The rows of a table of whole numbers, an epoch each."""
    if column.kind == "text" or column.values.dtype.kind not in "iu" or column.rows > MOST_ORDERS:
        return
    if column.offsets is not None:
        parts = [column.values[a:b] for a, b in zip(column.offsets[:-1], column.offsets[1:], strict=True)]
    else:
        parts = list(column.values) if len(column.row_shape) == 1 else []
    for i, part in enumerate(parts):
        yield Order(i, f"row {i}", np.asarray(part))


def _table(shard: Shard) -> Iterator[tuple[Shard, str, list[Order]]]:
    """A column of epochs beside one of samples."""
    columns = {n: c for n, c in shard.columns.items() if _single(c) and c.missing is None}
    epoch = next((c.values for n, c in columns.items() if n.lower() in ("epoch", "epochs", "pass")), None)
    if epoch is None or shard.numbers is not None or not (np.diff(epoch.astype(np.int64)) >= 0).all():
        return
    kinds, first = np.unique(epoch, return_index=True)
    for name, column in columns.items():
        if column.values is not epoch and 2 <= len(kinds) <= MOST_ORDERS:
            parts = np.split(np.asarray(column.values), first[1:])
            yield shard, name, [Order(int(k), f"epoch {k}", p) for k, p in zip(kinds, parts, strict=True)]


def _shuffled(samples: Array) -> bool:
    """Whether each of a run of numbers is there once, and not in their own order."""
    if len(samples) < FEWEST:
        return False
    ordered = np.sort(samples)
    if not (np.diff(ordered.astype(np.int64)) == 1).all():
        return False
    return float((np.abs(np.diff(samples.astype(np.int64))) == 1).mean()) < FORWARD


def _judged(shard: Shard, field: str, orders: list[Order]) -> Iterator[Finding]:
    shuffled = [o for o in orders if _shuffled(o.samples)]
    if len(shuffled) < 2 or len(shuffled) < len(orders) - 1:  # the last may have been cut
        return
    first: dict[bytes, Order] = {}
    again = [(o, first.setdefault(o.samples.astype(np.int64).tobytes(), o)) for o in shuffled]
    same = [(o, earlier) for o, earlier in again if earlier is not o]
    chance = 2 * math.log(len(shuffled)) - math.lgamma(min(len(o.samples) for o in shuffled) + 1)
    if not same or chance >= math.log(LEVEL):
        return
    pairs = [f"{o.told} has that of {earlier.told}" for o, earlier in same]
    yield RULE.finding(
        f"{len(same)} of {len(shuffled)} orders in {field} of {short(shard)} are earlier ones again, all of "
        f"{len(same[0][0].samples):,} samples: {listed(pairs)}",
        place(shard, field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": field, "same": len(same), "orders": len(shuffled), "epoch": same[0][0].epoch,
                  "earlier": same[0][1].epoch, "shard": short(shard)},
    )
