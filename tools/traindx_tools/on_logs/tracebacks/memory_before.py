"""What the memory that a log prints did before it ran out: flat, grown, or higher at the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Value
from traindx_tools.on_logs.run import ErrorEvent, Run, Series
from traindx_tools.on_logs.tracebacks.memory_numbers import readable

FLAT = 0.03
"""Of the memory: what allocators and batches of unlike lengths move it by."""
FEWEST = 3
PLAUSIBLE = 0.02
"""Of the device: a number below that is no use of its memory in MiB, and is told as it is written."""


@dataclass(frozen=True)
class MemoryBefore:
    """In words, and as values: first and last in the log's own numbers, their records."""

    text: str
    measured: dict[str, Value]


def memory_before(run: Run, error: ErrorEvent, total: float | None) -> MemoryBefore | None:
    """The course of the longest memory series up to an error; None where fewer than three records were printed.

    `total`: the size of the device in GiB where the message names it; it tells whether a number without a unit is MiB.
    """
    before = [(s, int(((s.line <= error.line) & s.finite).sum())) for s in run.series
              if s.name.partition("/")[0] == "memory" and s.source == error.source and s.rank in (None, error.rank)]
    series, count = max(before, key=lambda pair: pair[1], default=(None, 0))
    if series is None or count < FEWEST:
        return None
    index = np.flatnonzero(series.finite & (series.line <= error.line))
    values = series.values[index]
    first, last, least, most = float(values[0]), float(values[-1]), float(values.min()), float(values.max())
    flat = most - least <= FLAT * abs(most)
    kind = "flat" if flat else "grew" if last > (1 + FLAT) * first else "varied"
    text = _told(series, index[0], index[-1], kind, (first, last, least, most), total)
    return MemoryBefore(text, {"memory_course": kind, "memory_first": first, "memory_last": last,
                               "memory_records": count})


def _told(s: Series, start: int, end: int, kind: str, values: tuple[float, float, float, float],
          total: float | None) -> str:
    first, last, least, most = (_amount(v, total, most=values[3]) for v in values)
    span = f"{s.unit} {s.position[start]:,.10g} to {s.position[end]:,.10g}"
    name = s.original.strip()
    if kind == "flat":
        return f"{name} in the log was flat at {last} from {span}: no growth before it"
    if kind == "grew":
        return f"{name} in the log grew from {first} to {last} from {span}"
    return f"{name} in the log lay between {least} and {most} from {span}, {last} at the end"


def _amount(value: float, total: float | None, most: float) -> str:
    mib = total is not None and PLAUSIBLE * total <= most / 1024 <= 1.05 * total
    return readable(value / 1024) if mib else f"{value:.5g}"
