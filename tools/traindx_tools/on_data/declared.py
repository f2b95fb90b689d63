"""What the data themselves say of a part: a field, or a manifest, that tells it from the others on purpose."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import short
from traindx_tools.on_data.roles import is_id_name, is_identifier, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View

SHARE = 0.98
MOST_KINDS = 50
_DIGIT = re.compile(r"\d")
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
    """A field with few values of which one, or some words, stand in the stretch and nowhere else; else ""."""
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
        if _words_apart(column, inside):
            return f"its field {name} says so"
    return ""


def _words_apart(column: Column, inside: Array) -> bool:
    """Whether the words of a field in the stretch are none of those outside: rows sorted by kinds that are otherwise.

    Words with digits are numbers of batches, days and parts, in whose order rows stand anyway.
    """
    if column.kind != "text" or len(column.texts) != len(inside):
        return False
    words = np.asarray(column.texts)
    if any(_DIGIT.search(w) for w in np.unique(words)):
        return False
    there, elsewhere = np.unique(words[inside]), np.unique(words[~inside])
    return min(float(np.isin(words[~inside], there).mean()), float(np.isin(words[inside], elsewhere).mean())
               ) <= 1.0 - SHARE


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
        if shard.total <= 10_000:
            found.append((short(shard), {n: c.texts if c.texts else c.values.tolist() for n, c in shard.columns.items()
                                         if not c.row_shape and c.kind != "sequence"}))
    return found
