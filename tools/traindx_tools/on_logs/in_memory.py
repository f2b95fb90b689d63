"""A history that a program holds in memory, as a log: records, columns, or a data frame of any library.

Each record becomes a line of JSON, which the reader of JSON lines reads. Nothing is imported for it: a value is asked
what it is (`item`, `tolist`, `to_dict`), so that frames, arrays and scalars of every library are taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.short import in_short

NAME = "history"
"""What its lines are called in places: `history:12` is its twelfth record."""
EXAMPLE = '[{"epoch": 0, "loss": 2.3, "val_loss": 2.2}, ...] or {"epoch": [0, 1], "loss": [2.3, 1.9]}'
MOST_RECORDS = 5_000_000
"""Records that are taken; a longer history is handed over as a file, which is read in parts."""

History = Any
"""Records (a list of dicts), columns (a dict of lists) or a data frame."""


class Lines(bytes):
    """The lines of a history: standard input that has a name."""

    name = NAME


def taken_out(given: object, stdin: object = None) -> tuple[object, Lines | None]:
    """The paths with "-" in place of a history, and its lines in place of standard input.

    `given`: a path, a history, or a list of paths of which one may be a history. What holds none comes back as it is,
    with None. Raises BadUsage for a history without a value, for two of them, and for one beside standard input.
    """
    if is_history(given):
        parts: list[object] = [given]
    elif isinstance(given, (list, tuple)):
        parts = list(given)
        if not parts:
            raise BadUsage("got an empty list, expected paths or a history with at least one record: call it after the "
                           "first epoch, or give a log")
    else:
        return given, None
    found = [i for i, part in enumerate(parts) if is_history(part)]
    if not found:
        return given, None
    if len(found) > 1:
        raise BadUsage(f"got {len(found)} histories, expected one: a diagnosis is about one run. Call it for each")
    if stdin is not None or "-" in [p for p in parts if isinstance(p, str)]:
        raise BadUsage("got a history and standard input ('-'), expected one of them: leave the other out")
    lines = as_lines(parts[found[0]])
    return [*parts[:found[0]], "-", *parts[found[0] + 1:]], lines


def is_history(given: object) -> bool:
    """Whether something can only be meant as a history: a dict, records, a frame, or an object that keeps one."""
    if isinstance(given, (str, bytes, Path)):
        return False
    if isinstance(given, Mapping) or _is_frame(given) or isinstance(getattr(given, "history", None), Mapping):
        return True
    return isinstance(given, (list, tuple)) and bool(given) and all(isinstance(r, Mapping) for r in given)


def as_lines(history: History) -> Lines:
    """The records as lines of JSON, a non-finite value as NaN or Infinity. Raises BadUsage."""
    records = [_plain_record(record) for record in _records(history)]
    if not any(records):
        raise BadUsage(f"the history is empty: got {_what(history)}. Expected records with numbers, as in {EXAMPLE}; "
                       "give it after the first epoch")
    numbers = [v for record in records for v in record.values() if isinstance(v, (int, float))]
    if not numbers:
        names = ", ".join(dict.fromkeys(str(k) for record in records[:3] for k in record))
        raise BadUsage(f"the history holds no number: its names are {names[:200]}. Expected metrics, as in {EXAMPLE}")
    return Lines("".join(f"{json.dumps(record)}\n" for record in records).encode())


def _records(history: History) -> list[Mapping[str, Any]]:
    """One mapping a record. Raises BadUsage for columns of different lengths and for too many records."""
    if not isinstance(history, Mapping) and isinstance(getattr(history, "history", None), Mapping):
        history = history.history  # what `fit` of Keras returns
    if _is_frame(history):
        records = _of_frame(history)
    elif isinstance(history, Mapping):
        records = _of_columns(history)
    else:
        records = list(history)
    if len(records) > MOST_RECORDS:
        raise BadUsage(f"the history has {len(records):,} records, more than {MOST_RECORDS:,}: write it to a CSV or "
                       "JSON lines file and give its path")
    return records


def _is_frame(given: object) -> bool:
    """Whether it has what frames of pandas, polars and their like have in common, and arrays have not."""
    return hasattr(given, "columns") and (hasattr(given, "to_dicts") or hasattr(given, "to_dict"))


def _of_frame(frame: Any) -> list[Mapping[str, Any]]:
    """The rows of a frame, with an index that has a name as a column.

    A frame has one sign, NaN, for a value that is not finite and for a cell that was never filled. A column counts as
    gone NaN where it never comes back, the two rows before have it, and each such row holds all else that they hold;
    any other cell is an empty one.
    """
    if hasattr(frame, "to_dicts"):  # polars tells null and NaN apart
        return [{k: v for k, v in row.items() if v is not None} for row in frame.to_dicts()]
    if any(name is not None for name in getattr(frame.index, "names", ())):
        frame = frame.reset_index()
    rows: list[dict[Any, Any]] = frame.to_dict("records")
    filled = [{k for k, v in row.items() if not _absent(v)} for row in rows]
    last = {k: i for i, names in enumerate(filled) for k in names}
    kept: list[Mapping[str, Any]] = []
    for i, row in enumerate(rows):
        gone = {k for k, at in last.items() if 0 < at < i and k in filled[at - 1]
                and filled[i] <= filled[at] and row[k] is not None
                and filled[at] - filled[i] <= {n for n, end in last.items() if end < i}}
        kept.append({k: v for k, v in row.items() if k in filled[i] or k in gone})
    return kept


def _absent(value: Any) -> bool:
    """Whether a cell is None or not equal to itself, as NaN, NaT and their like are."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA refuses to be a truth value, an array is no cell
        return not hasattr(value, "shape")


def _of_columns(columns: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """One record a row. Columns of numbers alone are one record."""
    listed = {name: _as_list(cells) for name, cells in columns.items()}
    of_lists = {name: cells for name, cells in listed.items() if cells is not None}
    if not of_lists:
        return [columns] if columns else []
    lengths = {name: len(cells) for name, cells in of_lists.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {n:,}" for name, n in list(lengths.items())[:6])
        raise BadUsage(f"the columns of the history have different lengths ({told}), so nothing says which values "
                       'belong together: give records with their step, as in [{"step": 0, "loss": 2.3}, {"step": 100, '
                       '"val_loss": 2.2}]')
    rows = zip(*of_lists.values(), strict=True)
    return [dict(zip(of_lists, row, strict=True)) for row in rows]


def _as_list(cells: Any) -> list[Any] | None:
    """A column as a list: of an array or a tensor what it holds; None for a single value."""
    if isinstance(cells, (str, bytes, Mapping)):
        return None
    if hasattr(cells, "tolist"):
        made = cells.tolist()
        return made if isinstance(made, list) else None
    return list(cells) if isinstance(cells, Iterable) else None


def _plain_record(record: Any) -> dict[str, Any]:
    """A record with names as text and values as JSON has them; without what is no number and no text."""
    if not isinstance(record, Mapping):
        raise BadUsage(f"a record of the history is {in_short(record)}, expected a dict of numbers: {EXAMPLE}")
    plain = {str(name): _plain(value) for name, value in record.items()}
    return {name: value for name, value in plain.items() if value is not None}


def _plain(value: Any, depth: int = 4) -> Any:
    """A number, a text or a dict of such; None for everything else."""
    if isinstance(value, Mapping):
        inner = {str(n): _plain(v, depth - 1) for n, v in value.items()} if depth else {}
        return {n: v for n, v in inner.items() if v is not None} or None
    if hasattr(value, "item") and getattr(value, "shape", ()) in ((), (1,)):
        value = _one(value)
    if isinstance(value, (bool, int, float, str)):
        return value
    try:
        return float(value)  # a Decimal, a Fraction
    except (TypeError, ValueError, OverflowError):
        return None


def _one(value: Any) -> Any:
    try:
        return value.item()
    except (TypeError, ValueError, RuntimeError):  # an array without a value, a tensor on the "meta" device
        return None


def _what(history: History) -> str:
    """What came, in a few words."""
    if _is_frame(history):
        names = ", ".join(str(c) for c in list(history.columns)[:6])
        return f"a frame with no row{' and the columns ' + names if names else ' and no column'}"
    return in_short(history)
