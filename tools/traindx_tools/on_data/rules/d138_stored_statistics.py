"""Statistics beside the data disagree with them for one channel or feature, while they agree for the others.

Means and standard deviations in JSON, YAML or npz files, and those of scalers, are held against those of the data, of
training alone and of all. Where most channels agree the statistics belong to these data; a channel that is far off was
computed from something else, or two were exchanged. Statistics of a transformed channel (a logarithm, a root, without
zeros) are as they should be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import listed, number
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.slices import Part, moments, parts_of, values_at
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import Statistics, View
from traindx_tools.rules import Rule, Threshold

FEWEST = 50
AGREES = 0.1
FAR = 0.5
TIMES = 5.0
SCALES = (1.0, 1.0 / 255.0, 255.0)
"""Statistics of pixels are of 0 to 1 or of 0 to 255."""

RULE = Rule(
    id="D138",
    name="stored-statistics",
    title="Statistics beside the data disagree with them",
    severity=Severity.HIGH,
    sees="means and standard deviations in files beside the data, and those of each channel or feature of the data",
    matters="The channel is shifted or scaled wrongly wherever it is normalised with these numbers.",
    alike=(
        "Statistics of training alone: those of all data differ by little.",
        "A channel that is transformed first: the logarithm agrees.",
        "Statistics of other data, such as ImageNet's: no channel agrees.",
    ),
    confirm=("Compute mean and standard deviation of the named channel from the training files.",
             "Write them into a copy of the file and train again."),
    thresholds={
        "agrees": Threshold(AGREES, "standard deviations", "within which a channel agrees; most must"),
        "far": Threshold(FAR, "standard deviations", "from which on one is far off, or its logarithm of the spread"),
        "times": Threshold(TIMES, "times", "the difference of training and all data, and the error of sampling"),
        "rows": Threshold(FEWEST, "rows", "of the data"),
    },
)


@dataclass(frozen=True, eq=False)
class _Measured:
    """Means and spreads of channels; `values(k)`: the values of one."""

    field: str
    means: Array
    spreads: Array
    margin: Array
    """By how much the mean may differ, in spreads: sampling, and training from all."""
    values: Callable[[int], Array]


def check(view: View) -> Iterator[Finding]:
    """A finding for each such file, field and set."""
    for said in view.statistics:
        for data in view.sets:
            for measured in _matching(data, said):
                found = _finding(said, measured)
                if found is not None:
                    yield found
                    break


def _matching(data: DataSet, said: Statistics) -> Iterator[_Measured]:
    """The fields of a set that have as many channels, or the columns that are called so."""
    named = [n for n in said.names if n in data.fields]
    train = [s for s in data.shards if s.split == "train"] or list(data.shards)
    if len(named) == len(said.names) >= 2:
        groups = [[s for s in g if all(n in s.columns for n in named)] for g in (train, data.shards)]
        columns = [s.columns[n] for g in groups for s in g for n in named]
        if all(groups) and all(c.kind == "number" and not c.row_shape for c in columns):
            sides = [_pooled([_columns(s, named) for s in g], [s.rows for s in g]) for g in groups]
            yield _measured("", sides, groups, lambda k: _joined(groups[0], named[k]))
        return
    for name in data.fields:
        groups = [
            [s for s in g if name in s.columns and s.columns[name].kind == "number"] for g in (train, data.shards)
        ]
        parts = parts_of(groups[1], name) if all(groups) else []
        for axis in sorted({p.axis for p in parts}):
            along = [p for p in parts if p.axis == axis]
            if len(along) == len(said.means):
                sides = [_pooled([moments(s, name, axis) for s in g], [s.rows for s in g]) for g in groups]
                yield _measured(name, sides, groups, _part_values(groups[0], name, along))


def _part_values(group: Sequence[Shard], name: str, parts: Sequence[Part]) -> Callable[[int], Array]:
    return lambda k: np.concatenate([values_at(s, name, parts[k]) for s in group])


def _columns(shard: Shard, names: Sequence[str]) -> tuple[Array, Array]:
    seen = [shard.summaries[n] for n in names]
    return np.array([s.mean for s in seen]), np.array([s.std for s in seen])


def _joined(group: Sequence[Shard], name: str) -> Array:
    return np.concatenate([np.asarray(s.columns[name].values, np.float64) for s in group])


def _pooled(told: Sequence[tuple[Array, Array]], rows: Sequence[int]) -> tuple[Array, Array]:
    weights = np.array(rows, np.float64)[:, None] / sum(rows)
    means, spreads = (np.stack([t[k] for t in told]) for k in (0, 1))
    mean = (weights * means).sum(axis=0)
    return mean, np.sqrt((weights * (spreads**2 + (means - mean) ** 2)).sum(axis=0))


def _measured(
    field: str,
    sides: Sequence[tuple[Array, Array]],
    groups: Sequence[Sequence[Shard]],
    values: Callable[[int], Array],
) -> _Measured:
    (mean, spread), (whole, wider) = sides
    rows = sum(s.rows for s in groups[0])
    scale = np.maximum(spread, 1e-30)
    apart = np.maximum(np.abs(whole - mean) / scale, np.abs(np.log(np.maximum(wider, 1e-30) / scale)))
    return _Measured(field, mean, spread, apart + (1.0 / math.sqrt(rows) if rows >= FEWEST else math.inf), values)


def _off(said: Statistics, measured: _Measured, order: Array, scale: float) -> Array:
    """How far off each channel is: of the mean in spreads, or the logarithm of the ratio of the spreads."""
    spread = np.maximum(measured.spreads * scale, 1e-30)
    mean = np.abs(said.means[order] - measured.means * scale) / spread
    return np.maximum(mean, np.abs(np.log(np.maximum(said.spreads[order], 1e-30) / spread)))


def _finding(said: Statistics, measured: _Measured) -> Finding | None:
    if not (np.isfinite(measured.margin).all() and (measured.spreads > 0).all() and (said.spreads > 0).all()):
        return None
    order = np.arange(len(said.means))
    off = min((_off(said, measured, order, s) for s in SCALES), key=lambda o: int((o >= AGREES).sum()))
    scale = next(s for s in SCALES if np.array_equal(off, _off(said, measured, order, s)))
    agree = off < np.maximum(AGREES, measured.margin)
    far = np.flatnonzero((off >= FAR) & (off >= TIMES * measured.margin))
    exchanged = _exchanged(said, measured, far, scale)
    enough = max(2, len(off) / 2) if exchanged is None else max(1, len(off) / 3)
    if not len(far) or agree.sum() < enough or agree.sum() + len(far) < len(off):
        return None
    if exchanged is None:
        far = np.array([k for k in far if not _transformed(said, measured, int(k), scale)], np.int64)
    return _told(said, measured, far, exchanged, scale) if len(far) else None


def _exchanged(said: Statistics, measured: _Measured, far: Array, scale: float) -> tuple[int, int] | None:
    if len(far) != 2:
        return None
    order = np.arange(len(said.means))
    order[far] = far[::-1]
    off = _off(said, measured, order, scale)
    return (int(far[0]), int(far[1])) if bool((off[far] < AGREES).all()) else None


def _transformed(said: Statistics, measured: _Measured, k: int, scale: float) -> bool:
    """Whether a usual transformation of the channel has these statistics."""
    values = measured.values(k) * scale
    values = values[np.isfinite(values)]
    ways = [values[values != 0.0]]
    if len(values) and values.min() >= 0.0:
        positive = values[values > 0.0]
        ways += [np.log1p(values), np.sqrt(values), np.log(positive), np.log10(positive), np.log10(values + 1.0)]
    low, high = np.quantile(values, (0.01, 0.99)) if len(values) else (0.0, 0.0)
    ways += [np.clip(values, low, high), values[(values >= low) & (values <= high)]]
    return any(
        len(w) >= FEWEST and abs(w.mean() - said.means[k]) < AGREES * w.std()
        and abs(math.log(max(float(w.std()), 1e-30) / said.spreads[k])) < AGREES
        for w in ways
    )


def _told(
    said: Statistics, measured: _Measured, far: Array, exchanged: tuple[int, int] | None, scale: float
) -> Finding:
    names = [said.names[k] if said.names else f"channel {k}" for k in far]
    of = f" of {measured.field}" if measured.field else ""
    numbers = [
        f"{name}{of}: mean {number(said.means[k])} and standard deviation {number(said.spreads[k])} against "
        f"{number(measured.means[k] * scale)} and {number(measured.spreads[k] * scale)} in the data"
        for name, k in zip(names, far, strict=True)
    ]
    how = f"; {names[0]} and {names[1]} were exchanged" if exchanged is not None else ""
    return RULE.finding(
        f"{said.file} disagrees with the data that it would normalise: {listed(numbers, 3)}{how}; the other "
        f"{len(said.means) - len(far)} agree",
        Location(file=said.file),
        said.file,
        bearing=Bearing.CAUSE,
        measured={"field": measured.field, "channels": tuple(names), "kind": "exchanged" if how else "statistics"},
    )
