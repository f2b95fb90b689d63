"""A history that a program holds in memory, as a log: records, columns, or a data frame of any library.

Each record becomes a line of JSON, which the reader of JSON lines reads. Nothing is imported for it: a value is asked
what it is (`item`, `tolist`, `to_dict`), so that frames, arrays and scalars of every library are taken.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.on_logs.readers.columns import EPOCH, STEP, TIME, role
from traindx_tools.short import attribute, in_short

NAME = "history"
"""What its lines are called in places: `history:12` is its twelfth record."""
EXAMPLE = '[{"epoch": 0, "loss": 2.3, "val_loss": 2.2}, ...] or {"epoch": [0, 1], "loss": [2.3, 1.9]}'
MOST_RECORDS = 5_000_000
"""Records that are taken; a longer history is handed over as a file, which is read in parts."""

DEEPEST = 4
"""Groups within each other that are looked into."""
_BEYOND = 10**309
"""A whole number that no double holds, for all of them: one of thousands of digits is no JSON (`beyond_double`)."""

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
    if isinstance(given, Mapping) or _is_frame(given) or isinstance(attribute(given, "history"), Mapping):
        return True
    return isinstance(given, (list, tuple)) and bool(given) and all(isinstance(r, Mapping) for r in given)


def as_lines(history: History) -> Lines:
    """The records as lines of JSON, a non-finite value as NaN or Infinity. Raises BadUsage."""
    records = [_plain_record(record) for record in _records(history)]
    if not any(records):
        raise BadUsage(f"the history {'is empty' if _is_empty(history) else 'holds no number'}: got {_what(history)}. "
                       f"Expected records with numbers, as in {EXAMPLE}; give it after the first epoch")
    if not any(map(_holds_a_number, records)):
        names = ", ".join(dict.fromkeys(str(k) for record in records[:3] for k in record))
        raise BadUsage(f"the history holds no number: its names are {names[:200]}. Expected metrics, as in {EXAMPLE}")
    return Lines("".join(f"{json.dumps(record)}\n" for record in records).encode())


def _is_empty(history: History) -> bool:
    """Whether there is nothing in it at all, not even what is no number."""
    if isinstance(history, Mapping):
        return all(not isinstance(cells, Mapping) and _as_list(cells) == [] for cells in history.values())
    return _is_frame(history) or not any(history)


def _holds_a_number(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_a_number, value.values()))
    return isinstance(value, (int, float))


def _records(history: History) -> list[Mapping[str, Any]]:
    """One mapping a record. Raises BadUsage for columns of different lengths and for too many records."""
    if not isinstance(history, Mapping) and isinstance(attribute(history, "history"), Mapping):
        history = history.history  # what `fit` of Keras returns
    if _is_frame(history):
        records = _of_frame(history)
    elif isinstance(history, Mapping):
        records = _of_mapping(history)
    else:
        records = list(history)
    if len(records) > MOST_RECORDS:
        raise BadUsage(f"the history has {len(records):,} records, more than {MOST_RECORDS:,}: write it to a CSV or "
                       "JSON lines file and give its path")
    return records


def _is_frame(given: object) -> bool:
    """Whether it has what frames of pandas, polars and their like have in common, and arrays have not."""
    return attribute(given, "columns") is not None and any(
        attribute(given, name) is not None for name in ("to_dicts", "to_dict"))


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
        return attribute(value, "shape") is None


def _of_mapping(history: Mapping[Any, Any]) -> list[Mapping[str, Any]]:
    """The rows of columns, of columns in groups (`{"train": {"loss": [...]}}`), or of records by number."""
    groups = {name: part for name, part in history.items() if isinstance(part, Mapping)}
    if groups and len(groups) == len(history) and all(_counts(name) for name in groups):
        return [{"step": number, **record} for number, record in groups.items()]
    flat = {name: _flat(part) for name, part in groups.items()}
    if not any(_as_list(cells) is not None for part in flat.values() for cells in part.values()):
        return _of_columns(history)
    own = {name: cells for name, cells in history.items() if name not in groups}
    tables = [own, *({n if _is_place(n) else f"{name}/{n}": c for n, c in part.items()} for name, part in flat.items())]
    if _one_table(tables):
        return _of_columns({n: cells for table in tables for n, cells in table.items()})
    return [row for table in tables for row in _of_columns(table)]


def _counts(name: object) -> bool:
    return (isinstance(name, int) and not isinstance(name, bool)) or (isinstance(name, str) and name.isdecimal())


def _is_place(name: object) -> bool:
    return role(str(name)) in (STEP, EPOCH, TIME)


def _flat(part: Mapping[Any, Any], depth: int = DEEPEST) -> dict[str, Any]:
    """The columns of a group and of groups within it, by names with a slash."""
    found: dict[str, Any] = {}
    for name, cells in part.items():
        if isinstance(cells, Mapping):
            inner = _flat(cells, depth - 1) if depth else {}
            found.update({n if _is_place(n) else f"{name}/{n}": c for n, c in inner.items()})
        else:
            found[str(name)] = cells
    return found


def _one_table(tables: Sequence[Mapping[str, Any]]) -> bool:
    """Whether groups are columns of the same rows: all as long, and a counter that several have is the same."""
    listed = [{n: cells for n, c in table.items() if (cells := _as_list(c)) is not None} for table in tables]
    counters: dict[str, list[Any]] = {}
    same = all(counters.setdefault(n, cells) == cells for table in listed for n, cells in table.items() if _is_place(n))
    return same and len({len(cells) for table in listed for cells in table.values()}) == 1


def _of_columns(columns: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """One record a row. Columns of numbers alone are one record."""
    listed = {name: _as_list(cells) for name, cells in columns.items()}
    for name, column in listed.items():
        if column and all(isinstance(cell, (list, tuple)) for cell in column):
            listed[name] = _single(name, columns[name], column)
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


def _single(name: object, given: object, column: Sequence[Sequence[Any]]) -> list[Any]:
    """The values of a column that holds lists of one value each. Raises BadUsage for others."""
    if all(len(cell) == 1 for cell in column):
        return [cell[0] for cell in column]
    raise BadUsage(f"{name!r:.60} of the history holds several values a record: got {in_short(given)}, expected one "
                   f"number a record. Give each under a name of its own, as in {EXAMPLE}")


def _as_list(cells: Any) -> list[Any] | None:
    """A column as a list: of an array or a tensor what it holds; None for a single value."""
    if isinstance(cells, (str, bytes, Mapping)):
        return None
    if attribute(cells, "tolist") is not None:
        made = cells.tolist()
        return made if isinstance(made, list) else None
    return list(cells) if isinstance(cells, Iterable) else None


def _plain_record(record: Any) -> dict[str, Any]:
    """A record with names as text and values as JSON has them; without what is no number and no text."""
    if not isinstance(record, Mapping):
        raise BadUsage(f"a record of the history is {in_short(record)}, expected a dict of numbers: {EXAMPLE}")
    plain = {str(name): _plain(value) for name, value in record.items()}
    return {name: value for name, value in plain.items() if value is not None}


def _plain(value: Any, depth: int = DEEPEST) -> Any:
    """A number, a text or a dict of such; None for everything else."""
    if isinstance(value, Mapping):
        inner = {str(n): _plain(v, depth - 1) for n, v in value.items()} if depth else {}
        return {n: v for n, v in inner.items() if v is not None} or None
    if attribute(value, "item") is not None and (attribute(value, "shape") or ()) in ((), (1,)):
        value = _one(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _BEYOND:
        return _BEYOND if value > 0 else -_BEYOND
    if isinstance(value, (bool, int, float, str)):
        return value
    try:
        number = float(value)  # a Decimal, a Fraction
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        return None
    if math.isinf(number) and value != number:
        return _BEYOND if value > 0 else -_BEYOND
    return number


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
