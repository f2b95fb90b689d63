"""What a logger writes of each record by itself: who wrote it, from which line, at which level, when. No metrics.

Told by what a field is. A logger that puts the program's values into a member of their own (`extra`, `fields`) has its
own beside it. Where it mixes both, its whole numbers say the same in all records of one kind (the line of the call, the
process, the port), while what is measured moves; a clock stands near today in one of the units of clocks. Only records
that carry a message and a level are a logger's; a name that is known for a metric always stays one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers.names import wrapper_of

if TYPE_CHECKING:
    from traindx_tools.on_logs.readers.recorder import Columns
    from traindx_tools.on_logs.readers.series_names import Key

_MESSAGES = frozenset({"message", "msg", "event", "text"})
_LEVELS = frozenset({"level", "levelname", "severity", "lvl", "level_name", "levelno", "loglevel", "log_level"})
_OF_LOGGING = frozenset({"created", "msecs", "relativecreated", "levelno", "lineno", "process", "thread"})
"""Numbers of a record of Python's `logging`, some of which move."""
FEWEST = 3
"""Records of a kind from which on a number that stays the same says who wrote them."""
GOES_ON = 0.9
"""Share of the records at which a clock may not go back: several threads write a little out of turn."""
_CLOCKS = tuple((1e9 * unit, 2.2e9 * unit) for unit in (1.0, 1e3, 1e6, 1e9))
"""From 2001 to 2039 in seconds, milliseconds, microseconds and nanoseconds."""
_MIXED = np.uint64(0x9E3779B97F4A7C15)
_SHOWN = 6


def is_of_logger(names: Iterable[str]) -> bool:
    """Whether records with these members are those of a logger: they have a message and a level."""
    last = {n.lower().rsplit("/", 1)[-1].rsplit(".", 1)[-1] for n in names}
    parents = {p for n in names for p in n.lower().split("/")[:-1]}  # {"level": {"name": ...}}
    return bool(last & _MESSAGES) and bool((last | parents) & _LEVELS)


def told_by_logger(values: Mapping[Key, Columns], names: Collection[str]) -> list[Key]:
    """The series that are none of the program's values. `names`: all members that the records had."""
    if not is_of_logger(names):
        return []
    wrappers = {w for k in values if (w := wrapper_of(k.original))}
    kinds = _kinds(values)
    return [k for k, columns in values.items() if _may_be(k) and (
        _beside(k, wrappers) or _is_clock(columns) or _last(k) in _OF_LOGGING or _stays(columns, kinds))]


def remark(keys: Iterable[Key]) -> str:
    """What is said of them, "" for none."""
    told = list(dict.fromkeys(k.original for k in keys))
    more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return f"its logger's own numbers are no metrics: {', '.join(told[:_SHOWN])}{more}" if told else ""


def _may_be(key: Key) -> bool:
    name = key.name
    return key.metric is None and not (name.known and name.canonical not in ("step_time", "elapsed"))


def _beside(key: Key, wrappers: Collection[str]) -> bool:
    """Whether a member stands beside the one that holds the program's values, in the same object or above it."""
    return bool(wrappers) and not any(key.original.startswith(w) for w in wrappers)


def _last(key: Key) -> str:
    return key.original.lower().rsplit("/", 1)[-1]


def _is_clock(columns: Columns) -> bool:
    told = columns[1].told()
    low, high = float(np.min(told, initial=np.inf)), float(np.max(told, initial=-np.inf))
    goes_on = len(told) < 2 or bool((np.diff(told) >= 0).mean() >= GOES_ON)
    return goes_on and any(first <= low and high <= last for first, last in _CLOCKS)


def _kinds(values: Mapping[Key, Columns]) -> NDArray[np.uint64]:
    """Of each record which known metrics it holds, as a number; 0 where it holds none."""
    records = max((int(index.last) + 1 for index, _ in values.values() if len(index)), default=0)
    kinds = np.zeros(records, np.uint64)
    for i, key in enumerate(k for k in values if not _may_be(k)):
        at = values[key][0].told()
        kinds[at] = (kinds[at] + np.uint64(i + 1)) * _MIXED
    return kinds


def _stays(columns: Columns, kinds: NDArray[np.uint64]) -> bool:
    """Whether a whole number is the same in all records of each kind, one of which has several records."""
    records, told = columns[0].told(), columns[1].told()
    if not len(told) or not (np.isfinite(told) & (told == np.floor(told)) & (told > 0)).all():
        return False
    of = kinds[records]
    order = np.argsort(of, kind="stable")
    of, value = of[order], told[order]
    same = (of[1:] == of[:-1]) & (of[1:] > 0)
    _, counts = np.unique(of[of > 0], return_counts=True)
    return int(counts.max(initial=0)) >= FEWEST and not (same & (value[1:] != value[:-1])).any()
