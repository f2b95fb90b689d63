"""Records (dicts of plain values) into columns: what JSON lines, tables of text and tar archives have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.readers.arrays import Serialised, sequence_column, text_column
from traindx_tools.on_data.turns import of_messages

MOST_FIELDS = 4096
FEW = 0.2
"""Share of the records of a field of texts that may hold bytes which are none."""
BOX = 4
"""Numbers of a box."""
MOST_PLACES = 4
"""Values of an entry of a list that is a list itself, as `[start, end, label]` is."""
DEPTH = 5
"""Levels of nested objects that become fields of their own, "meta.source"."""


def flattened(record: Mapping[str, Any], depth: int = DEPTH, before: str = "") -> dict[str, Any]:
    """The fields of a record with those of the objects in it."""
    out: dict[str, Any] = {}
    for key, value in record.items():
        name = f"{before}{key}"
        if isinstance(value, dict) and depth > 1:
            out.update(flattened(value, depth - 1, f"{name}."))
        else:
            out[name] = value
    return out


def columns_of(records: Sequence[Mapping[str, Any]], file: str) -> dict[str, Column]:
    """The fields of flattened records. A field that is missing in a record is an empty cell of it."""
    names: dict[str, None] = {}
    for record in records:
        for key in record:
            if key not in names and len(names) < MOST_FIELDS:
                names[key] = None
    found: dict[str, Column | None] = {}
    for name in names:
        values = [r.get(name) for r in records]
        kept = sum(isinstance(v, Serialised) for v in values)
        if kept and kept < FEW * len(values):  # texts of which some are damaged
            values = [None if isinstance(v, Serialised) else v for v in values]
        elif kept:
            found[f"{name}.content"] = _marks(f"{name}.content", values, file)
            continue
        found[name] = _column(name, values, file)
        if any(isinstance(v, list) and v and isinstance(v[0], (dict, list)) for v in values[:100]):
            found |= {n: c for n, c in _of_entries(name, values, file).items() if n not in names}
    return {n: c for n, c in found.items() if c is not None}


def _marks(name: str, values: Sequence[Any], file: str) -> Column:
    """Hashes of bytes, without texts: they are compared, and no letters are looked at. A text among them is bytes."""
    some = [Serialised.of(v.encode("utf-8", "surrogatepass")) if isinstance(v, str) else v for v in values]
    marks = np.fromiter((v.mark if isinstance(v, Serialised) else 0 for v in some), np.uint64, len(some))
    return Column(name, "text", np.ones(len(some), np.int64), file, digests=marks)


def _of_entries(name: str, values: list[Any], file: str) -> dict[str, Column]:
    """The whole numbers and the boxes of the entries of lists, such as the spans of a text: a sequence a key or place.

    Entries are objects (`{"start": 3, "end": 8}`) or short lists that hold more than numbers or two of them.
    """
    rows = [v if isinstance(v, list) else [] for v in values]
    first = next((e for r in rows for e in r), None)
    boxes: dict[str, Column] = {}
    if isinstance(first, dict):
        of = {f"{name}.{k}": k for k, v in first.items() if type(v) is int}
        boxes = _boxes_of_entries(name, [k for k, v in first.items() if _is_box(v)], rows, file)
    elif isinstance(first, list) and len(first) <= MOST_PLACES and (
            len(first) == 2 or not all(isinstance(v, (int, float)) for v in first)):
        of = {f"{name}[{k}]": k for k, v in enumerate(first) if type(v) is int}
    else:
        return {}
    out = boxes
    for told, key in of.items():
        try:
            items = [[e[key] for e in row] for row in rows]
        except (KeyError, IndexError, TypeError):
            continue
        if all(type(i) is int and -(2**63) <= i < 2**63 for row in items for i in row):
            out[told] = sequence_column(told, [np.asarray(row, np.int64) for row in items], file)
    return out


def _boxes_of_entries(name: str, keys: list[str], rows: list[list[Any]], file: str) -> dict[str, Column]:
    """Four numbers of each entry under a key (`{"bbox": [3, 37, 14, 23]}`), the boxes of a row behind each other."""
    out = {}
    for key in keys:
        boxes = [[e.get(key) if isinstance(e, dict) else None for e in row] for row in rows]
        if all(_is_box(b) for row in boxes for b in row) and (
                made := _of_boxes(f"{name}.{key}", boxes, file)) is not None:
            out[f"{name}.{key}"] = made
    return out


def _is_box(value: Any) -> bool:
    return isinstance(value, list) and len(value) == BOX and all(type(v) in (int, float) for v in value)


def _column(name: str, values: list[Any], file: str) -> Column | None:
    missing = np.fromiter((v is None for v in values), bool, len(values))
    if missing.all():
        return Column(name, "number", np.full(len(values), np.nan), file, missing=missing)
    present = [v for v in values if v is not None]
    if all(isinstance(v, bool) for v in present) and not missing.any():
        return Column(name, "number", np.array(values, bool), file)
    if all(isinstance(v, (int, float)) for v in present):
        return number_column(name, values, missing, file)
    if all(isinstance(v, list) for v in present):
        return _lists(name, values, missing, file)
    return text_column(name, ["" if v is None else v if isinstance(v, str) else repr(v)[:2000] for v in values], file)


def number_column(name: str, values: list[Any], missing: Any, file: str) -> Column:
    """A field of numbers: integers where all are and none is missing, else float64 with NaN where a cell is empty."""
    if not missing.any() and all(isinstance(v, int) and -(2**63) <= v < 2**63 for v in values):
        return Column(name, "number", np.array(values, np.int64), file)
    array = np.fromiter((np.nan if v is None else _float(v) for v in values), np.float64, len(values))
    return Column(name, "number", array, file, missing=missing if missing.any() else None)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _lists(name: str, values: list[Any], missing: Any, file: str) -> Column | None:
    if not missing.any() and (table := _table(values)) is not None:
        return Column(name, "number", table, file)
    rows = [[] if v is None else v for v in values]
    flat = [item for row in rows for item in row]
    if all(isinstance(i, int) and -(2**63) <= i < 2**63 for i in flat):
        return sequence_column(name, [np.asarray(r, np.int64) for r in rows], file)
    if all(isinstance(i, (int, float)) for i in flat):
        return sequence_column(name, [[_float(i) for i in r] for r in rows], file)
    if all(isinstance(i, list) for i in flat):
        if (boxes := _of_boxes(name, rows, file)) is not None:
            return boxes
        try:
            array = np.array(rows, np.float64)
        except (ValueError, TypeError, OverflowError):
            return None
        return Column(name, "number", array, file)
    return replace(text_column(name, ["\n".join(map(_said, r)) for r in rows], file), turns=of_messages(rows))


def _of_boxes(name: str, rows: list[Any], file: str) -> Column | None:
    """Lists of several lists of four numbers, as those of boxes are; None of anything else."""
    inner = [i for row in rows for i in row]
    if len({len(r) for r in rows}) < 2 or not all(map(_is_box, inner)):
        return None
    made = sequence_column(name, [[_float(v) for i in row for v in i] for row in rows], file)
    return replace(made, inner=BOX)


def _table(values: list[Any]) -> Array | None:
    """Lists of one length of numbers as an array, told at numpy's speed; None where they are anything else."""
    if not values[0] or any(len(v) != len(values[0]) for v in values):
        return None
    try:
        array = np.array(values)
    except (ValueError, TypeError, OverflowError):
        return None
    return array if array.ndim >= 2 and array.dtype.kind in "iuf" else None


def _said(item: Any) -> str:
    """A turn of a conversation, or another item of a list, as text."""
    if isinstance(item, dict):
        return " ".join(str(v) for v in item.values() if isinstance(v, (str, int, float)))
    return str(item)
