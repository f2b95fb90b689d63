"""Which panels a picture has and which series stand in each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.plots.axis import Axis

MOST_PANELS = 6
ENOUGH = 3
"""Panels from which on minor metrics (times, throughput) only distract."""
MOST_LINES = 8
"""Lines that a panel may hold and a person can still tell apart."""
MOST_OPEN = 32
"""Panels of metrics without a name of their own that wait for more lines."""


@dataclass(frozen=True, eq=False)
class Panel:
    """A title, its series, and how many more there were than fit."""

    title: str
    series: tuple[Series, ...]
    more: int = 0


@dataclass(frozen=True)
class _Kind:
    title: str
    takes: Callable[[Series], bool]
    always: bool = False
    """Shown whenever it has series, before any other."""
    minor: bool = False
    """Shown only where a finding speaks of it or little else is there."""


class _Sized(NamedTuple):
    """A series and between which values it lies."""

    name: str
    low: float
    high: float
    series: Series


def _named(*names: str) -> Callable[[Series], bool]:
    return lambda s: s.name in names


_KINDS = (
    _Kind("loss", _named("loss", "mse", "nll", "discriminator_loss", "generator_loss"), always=True),
    _Kind("loss terms", lambda s: s.name.startswith("loss/"), always=True),
    _Kind("gradient norm", _named("grad_norm"), always=True),
    _Kind("learning rate", lambda s: s.name == "learning_rate" or s.name.startswith("learning_rate/"), always=True),
    _Kind("loss scale", _named("loss_scale")),
    _Kind("accuracy", lambda s: s.name in ("accuracy", "f1", "auc") or s.name.endswith("accuracy")),
    _Kind("R2", _named("r2")),
    _Kind("codebook", lambda s: s.name.startswith("codebook_")),
    _Kind("reward", _named("reward", "reward_std")),
    _Kind("entropy", _named("entropy")),
    _Kind("KL divergence", _named("kl")),
    _Kind("advantage", _named("advantage_max", "advantage_min")),
    _Kind("memory (MiB)", lambda s: s.name == "memory" or s.name.startswith("memory/"), minor=True),
    _Kind("prediction spread", _named("prediction_std")),
    _Kind("perplexity", _named("perplexity"), minor=True),
    _Kind("time (s)", _named("data_time", "step_time"), minor=True),
    _Kind("throughput (per s)", _named("throughput", "tokens_per_second", "mfu"), minor=True),
    _Kind("skipped or NaN steps", _named("skipped_steps", "nan_steps"), minor=True),
    _Kind("weight norm", _named("weight_norm"), minor=True),
)


def panels_of(run: Run, axis: Axis, findings: Sequence[Finding] = ()) -> list[Panel]:
    """Loss, its terms, gradient norm and learning rate; then, up to six in all, what the findings speak of first.

    Series that have no place on the axis are left out.
    """
    left = _distinct(s for s in run.series if len(s) and not s.name.startswith("grad_norm/")
                     and axis.place(s) is not None)
    ranked: list[tuple[int, Panel]] = []
    for kind in _KINDS:
        taken = [s for s in left if kind.takes(s)]
        left = [s for s in left if not kind.takes(s)]
        if taken:
            ranked.append((0 if kind.always else 3 if kind.minor else 2, _panel(kind.title, taken)))
    ranked += [(3, panel) for panel in _others([s for s in left if not _counts(s)])]
    ranked = [(1, p) if rank > 1 and _spoken_of(p, findings) else (rank, p) for rank, p in ranked]
    told = [(rank, p) for rank, p in ranked if rank < 3]
    fill = [(rank, p) for rank, p in ranked if rank == 3][: max(0, ENOUGH - len(told))]
    return [p for _, p in sorted(told + fill, key=lambda r: r[0])][:MOST_PANELS]


def _others(series: Sequence[Series]) -> list[Panel]:
    """Metrics without a name of their own: those of like size share a panel.

    Only the last `MOST_OPEN` panels take more lines: each metric is compared with those of them, not with all.
    """
    groups: list[list[_Sized]] = []
    still: deque[list[_Sized]] = deque(maxlen=MOST_OPEN)
    for s in (_Sized(s.name, *_ends(s), s) for s in series):
        near = next((g for g in still if all(_alike(s, other) for other in g)), None)
        if near is None:
            near = []
            groups.append(near)
            still.append(near)
        near.append(s)
        if len(near) >= MOST_LINES:
            still = deque((g for g in still if g is not near), maxlen=MOST_OPEN)
    return [_panel(g[0].name.replace("_", " ") if len({s.name for s in g}) == 1 else "other metrics",
                   [s.series for s in g]) for g in groups]


def _alike(one: _Sized, other: _Sized) -> bool:
    if one.name == other.name:
        return True
    larger, smaller = sorted((one.high - one.low, other.high - other.low), reverse=True)
    return one.low <= other.high and other.low <= one.high and larger <= 10 * smaller


def _ends(series: Series) -> tuple[float, float]:
    known = series.values[series.finite]
    return (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)


def _counts(series: Series) -> bool:
    """A counter or a clock: it only rises, by the same amount each time."""
    steps = np.diff(series.values)
    return len(steps) > 2 and bool((steps > 0).all()) and float(np.ptp(steps)) < 1e-6 * float(steps.max())


def _panel(title: str, series: Sequence[Series]) -> Panel:
    kept = series if len(series) <= MOST_LINES else sorted(series, key=len, reverse=True)[:MOST_LINES]
    return Panel(title, tuple(kept), len(series) - len(kept))


def _distinct(series: Iterable[Series]) -> list[Series]:
    """The same metric read from a log and from a table beside it is drawn once: the longer one.

    Two files that continue each other (a resumed run) are both kept.
    """
    kept: list[Series] = []
    twins: dict[tuple[str, str, int | None], list[Series]] = {}
    for s in sorted(series, key=len, reverse=True):
        same = twins.setdefault((s.name, s.group, s.rank), [])
        if not any(_covers(k, s) for k in same):
            kept.append(s)
            same.append(s)
    order = {"train": 0, "validation": 1, "test": 2}
    return sorted(kept, key=lambda s: (order.get(s.group, 3), s.rank or 0))


def _covers(longer: Series, shorter: Series) -> bool:
    if longer.unit != shorter.unit:
        return longer.source != shorter.source
    low, high = np.min(longer.position), np.max(longer.position)
    inside = (shorter.position >= low) & (shorter.position <= high)
    return float(np.mean(inside)) > 0.5


def _spoken_of(panel: Panel, findings: Sequence[Finding]) -> bool:
    faults = [f for f in findings if f.severity.rank > 0]
    return any(s.name in (f.measured.get("metric"), f.measured.get("series")) or s.name in f.statement
               or s.original in f.statement for f in faults for s in panel.series)
