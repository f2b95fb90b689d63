"""What the data themselves say of a part: a field, or a manifest, that tells it from the others on purpose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import short
from traindx_tools.on_data.roles import is_id_name, is_identifier, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View

SHARE = 0.98
MOST_KINDS = 50
_COUNTS = frozenset({"rows", "num_rows", "n_rows", "samples", "bytes", "size", "length", "count", "sha256", "md5"})


def tells_shard(view: View, group: Sequence[Shard], index: int, field: str) -> str:
    """A field that is constant in a shard, and in its siblings another constant; or a column of a manifest; else ""."""
    for name in group[index].columns:
        if name == field or not all(_plain(s.columns.get(name)) for s in group):
            continue
        values = [np.unique(keys(s.columns[name])[:2000]) for s in group]
        if all(len(v) == 1 for v in values) and _alone([v[0] for v in values], index):
            return f"its field {name} says so"
    return _in_manifest(view, [short(s) for s in group], index)


def tells_stretch(shard: Shard, inside: Array, field: str) -> str:
    """A field with few values of which one stands in the stretch and nowhere else; else ""."""
    for name, column in shard.columns.items():
        if name == field or not _plain(column) or column.rows != len(inside):
            continue
        values = keys(column)
        kinds, counts = np.unique(values[inside], return_counts=True)
        if len(np.unique(values)) > MOST_KINDS:
            continue
        most = kinds[counts.argmax()]
        if counts.max() >= SHARE * inside.sum() and float((values[~inside] == most).mean()) <= 1.0 - SHARE:
            return f"its field {name} says so"
    return ""


def _plain(column: Column | None) -> bool:
    return column is not None and not column.row_shape and column.kind in ("number", "text") and not (
        column.kind == "text" and column.digests is None) and not is_identifier(column) and not is_id_name(column.name)


def _alone(values: Sequence[object], index: int) -> bool:
    """Whether one value differs from the others, which agree."""
    others = {str(v) for i, v in enumerate(values) if i != index}
    return len(others) == 1 and str(values[index]) not in others


def _in_manifest(view: View, files: Sequence[str], index: int) -> str:
    for where, table in tables_of(view):
        for names in table.values():
            at = {str(n).rpartition("/")[2]: i for i, n in enumerate(names)}
            if not all(f in at for f in files):
                continue
            for other, values in table.items():
                if values is not names and other.lower() not in _COUNTS and _alone([values[at[f]] for f in files],
                                                                                   index):
                    return f"{where} says {other} {str(values[at[files[index]]])[:20]} of it"
    return ""


def tables_of(view: View) -> list[tuple[str, dict[str, Sequence[object]]]]:
    """Small tables beside the data: where, and the values of each column; in JSON or as data files."""
    found: list[tuple[str, dict[str, Sequence[object]]]] = [*view.hints.tables]
    for shard in (s for d in view.sets for s in d.shards if s.format in ("csv", "json lines", "json", "parquet")):
        if shard.rows <= 10_000:
            found.append((short(shard), {n: c.texts if c.texts else c.values.tolist() for n, c in shard.columns.items()
                                         if not c.row_shape and c.kind != "sequence"}))
    return found
