"""Memory grows all the time.

After warm-up (allocator caches, lazily created optimizer state, compiled graphs) the memory of a training process is
flat. Growth that goes on through the second half of the log is kept data: loss tensors with their graphs, lists of
outputs, a cache without bound, or pages that forked loader workers copy as they touch them. Steps up at single records
(a longer sequence raises the peak) and growth that dies away are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.shapes import Track, line_fit, number, ratio, track
from traindx_tools.on_logs.run import Floats, Run, Series
from traindx_tools.rules import Rule, Threshold

GROWTH, LATE_GROWTH, RISING = 0.10, 0.04, 0.6
LATE_PART, LATE_PART_OF_FEW, FEW = 0.25, 0.45, 8
LATE_LARGE, LATE_LEAST = 0.12, 0.2
ENOUGH = 6

RULE = Rule(
    id="L401",
    name="memory-growth",
    title="Memory grows steadily",
    severity=Severity.HIGH,
    sees="Memory series after the first fifth of the log: growth in all, growth in the second half, how steady it is.",
    matters="The run ends in an out-of-memory error or in swapping, at a step that depends on nothing but its length.",
    alike=("Growth in the first steps that stops: allocator caches, optimizer state, worker start.",
           "A peak that jumps at single steps: long sequences, evaluation.", "A sawtooth: garbage collection."),
    confirm=("Log torch.cuda.memory_allocated() and the process's resident memory side by side: which of them grows?",
             "Run 200 steps with num_workers=0: growth in workers only is copy-on-write of a Python data set.",
             "Take two memory snapshots 100 steps apart and compare what is alive."),
    thresholds={
        "growth": Threshold(GROWTH, "of the memory after warm-up", "sagemaker-debugger: GPU memory growth of 10 %"),
        "late_growth": Threshold(LATE_GROWTH, "in the second half", "arithmetic: growth that dies away is caching"),
        "late_part": Threshold(LATE_PART, "of the growth in the second half (0.45 below 8 records)",
                               "arithmetic: a line has 0.5 there, growth that dies away less"),
        "rising": Threshold(RISING, "of eight stretches of the second half, and R^2 of a line", "steady, no few jumps"),
    },
)


@dataclass(frozen=True)
class Growth:
    """Memory from `first` (after warm-up) to `last`, `slope` a step."""

    first: float
    last: float
    slope: float
    fit: float
    start: int

    @property
    def share(self) -> float:
        return ratio(self.last - self.first, self.first)


def check(run: Run) -> Iterator[Finding]:
    """One finding: the memory series that grows most, with those that stay flat beside it."""
    tracks = [t for s in _memory(run) if (t := track(s)) is not None and len(t) >= ENOUGH and bool((t.y > 0).all())]
    grown = [(t, g) for t in tracks if (g := _growth(t)) is not None]
    if not grown:
        return
    t, g = max(grown, key=lambda pair: pair[1].share)
    flat = sorted({o.series.name for o in tracks if _growth(o) is None})
    yield _report(run, t, g, flat)


def _memory(run: Run) -> list[Series]:
    names = dict.fromkeys(s.name for s in run.series if s.name == "memory" or s.name.startswith("memory/"))
    wanted = [n for n in names if not n.endswith(("total", "limit", "capacity", "free", "available"))]
    ranks = dict.fromkeys((n, s.rank) for n in wanted for s in run.find(n))
    return [max((s for s in run.find(n) if s.rank == r), key=len) for n, r in ranks]


def _growth(t: Track) -> Growth | None:
    start = max(1, len(t) // 5)
    x, y = t.x[start:], t.y[start:]
    half = len(y) // 2
    edge = max(1, len(y) // 10)
    first, middle, last = (float(np.median(part)) for part in (y[:edge], y[half - edge // 2: half + edge // 2 + 1],
                                                              y[-edge:]))
    slope, _, fit = line_fit(x, y)
    late_slope, _, late_fit = line_fit(x[half:], y[half:])
    up = float((np.diff(_medians(y[half:], 8)) > 0).mean())
    grows = ratio(last, first) >= 1 + GROWTH and ratio(last, middle) >= 1 + LATE_GROWTH
    steady = up >= RISING and late_slope > 0 and late_fit >= RISING
    goes_on = _goes_on(len(t), last - middle, last - first, middle)
    return Growth(first, last, slope, fit, start) if grows and steady and goes_on else None


def _goes_on(records: int, late: float, whole: float, middle: float) -> bool:
    """Whether the growth of the second half is a fair part of all growth, or large in itself."""
    if records < FEW:
        return late >= LATE_PART_OF_FEW * whole
    return late >= LATE_PART * whole or (late >= LATE_LARGE * middle and late >= LATE_LEAST * whole)


def _medians(y: Floats, most: int) -> Floats:
    """Medians of up to `most` stretches: a few jumps move few of them, steady growth moves them all."""
    return np.array([np.median(part) for part in np.array_split(y, min(most, len(y)))])


def _amount(mib: float) -> str:
    """So many MiB, from 10 GiB on in GiB: as logs and `nvidia-smi` write them."""
    return f"{number(mib / 1024)} GiB" if mib >= 10 * 1024 else f"{number(mib)} MiB"


def _report(run: Run, t: Track, g: Growth, flat: list[str]) -> Finding:
    s = t.series
    killed = any("memory" in e.message.lower() or "oom" in e.type.lower() for e in run.errors)
    beside = f", while {', '.join(flat[:3])} stays flat" if flat else ""
    per = f"{_amount(g.slope)} a {t.unit}"
    begin, end = float(t.y[g.start]), float(t.y[-1])
    return RULE.finding(
        f"{s} grows from {_amount(begin)} at {t.place(g.start)} to {_amount(end)} at {t.place(-1)} "
        f"(+{100 * (ratio(end, begin) - 1):.0f} %, {per}) and does not stop{beside}", t.at(g.start, -1), s.source,
        bearing=Bearing.SIGN, severity=Severity.HIGH if g.share >= 0.25 or killed else Severity.MEDIUM,
        measured={"metric": s.name, "what": s.name.partition("/")[2] or None, "original": s.original, "first": g.first,
                  "last": g.last, "share": g.share, "slope": g.slope, "unit": t.unit, "linear_fit": g.fit,
                  "flat": tuple(flat), "out_of_memory": killed,
                  "position": float(s.position[t.index[g.start]])})
