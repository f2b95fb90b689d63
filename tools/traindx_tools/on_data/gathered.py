"""Sets that no file holds as they are: groups of a file one behind the other, pictures beside the labels of a table.

`demo_0/obs`, `demo_1/obs`, ... of different lengths are one table, a part for each file. Pictures whose labels stand in
a CSV, or are their folders, are rows of a picture and a label. Only observations that ask of parts, channels and labels
look at these; all others know the files themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.listings import Listing
from traindx_tools.on_data.named_runs import Looked, looked_of
from traindx_tools.on_data.recordings import Recording, in_groups, within
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

OF_GROUPS = frozenset({"D104", "D126", "D136", "D142", "D146", "D201"})
OF_PICTURES = frozenset({"D108", "D109", "D112", "D123", "D152"})
FILES, ROWS = 4, 100
"""Files of groups, and rows of each; of pictures in a folder."""
FOLDERS, MOST_FOLDERS = 3, 60
MOST_VALUES = 2**24


def of_groups(sets: Sequence[DataSet]) -> Iterator[DataSet]:
    """The groups of each file one behind the other, where several files hold groups of the same streams."""
    for data in sets:
        shards = [s for s in data.shards if s.numbers is None and in_groups(s)]
        found = [(s, max(within(s), key=len, default=())) for s in shards] if len(shards) >= FILES else []
        made = [m for s, f in found if (m := _joined(s, f)) is not None]
        fields = {frozenset(m.columns) for m in made}
        if len(made) >= FILES and len(made) == len(data.shards) and len(fields) == 1:
            yield DataSet(f"{data.name} by file", tuple(made))


def _joined(shard: Shard, recordings: Sequence[Recording]) -> Shard | None:
    if not recordings or len({tuple(r.streams) for r in recordings}) > 1:
        return None
    columns: dict[str, Column] = {}
    for name in recordings[0].streams:
        parts = [r.streams[name] for r in recordings]
        if len({p.shape[1:] for p in parts}) > 1 or sum(p.size for p in parts) > MOST_VALUES:
            return None
        values = np.concatenate(parts).astype(np.float32)
        called = name.replace("/", "_")
        columns[called] = Column(called, "number", values[:, 0] if values.shape[1] == 1 else values, shard.name)
    rows = next(iter(columns.values())).rows
    return None if rows < ROWS else Shard(shard.name, shard.format, columns, rows, rows, split=shard.split)


def of_pictures(sets: Sequence[DataSet], listings: Sequence[Listing]) -> Iterator[DataSet]:
    """Pictures or sounds with each label of theirs: a part for each split, or for each folder that holds all labels."""
    for data in sets:
        by_label: dict[tuple[str, tuple[str, ...]], list[Looked]] = {}
        for looked in looked_of(data, listings):
            by_label.setdefault((looked.label, looked.kinds), []).append(looked)
        told = any(one.source != one.shard.name for some in by_label.values() for one in some)
        for (label, _), some in by_label.items():
            if told and some[0].source == some[0].shard.name:
                continue  # folders beside a table of labels are where the files are from
            parts = [p for one in some for p in _by_folder(one)]
            if sum(p.rows for p in parts) >= ROWS:
                yield DataSet(f"{data.name} with {label}", tuple(parts))


def _by_folder(looked: Looked) -> list[Shard]:
    folders = np.array([PurePath(n).parent.as_posix() for n in looked.names])
    names, counts = np.unique(folders, return_counts=True)
    mixed = all(len(np.unique(looked.y[folders == n])) > 1 for n in names)
    if not FOLDERS <= len(names) <= MOST_FOLDERS or counts.min() < ROWS or not mixed:
        return [_shard(looked, np.arange(len(looked.y)), looked.shard.name)]
    return [_shard(looked, np.flatnonzero(folders == n), f"{looked.shard.name}/{n}") for n in names]


def _shard(looked: Looked, at: Array, name: str) -> Shard:
    label = Column(looked.label, "text", np.array([len(looked.kinds[k]) for k in looked.y[at]]), looked.source,
                   digests=looked.y[at].astype(np.uint64), texts=tuple(looked.kinds[k] for k in looked.y[at]))
    picture = Column("picture", "number", looked.images[at], looked.shard.name)
    columns = {"picture": picture, looked.label: label}
    return Shard(name, looked.shard.format, columns, len(at), len(at), split=looked.shard.split,
                 row_names=tuple(looked.names[int(i)] for i in at))
