"""Anomalies with the events that go ahead of them: the series, a lane of ticks below, and the lag between the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_logs.artifacts import told_as
from traindx_tools.on_logs.curves.pauses import between_records
from traindx_tools.on_logs.events.anomalous import BETWEEN, PAUSE
from traindx_tools.on_logs.events.slow import SECONDS, TIMES
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.plots import style
from traindx_tools.plots.decimate import decimate
from traindx_tools.plots.scale import bounded, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RULES = ("L801", "L803")


def plot_alignment(run: Run, findings: Sequence[Finding], out: Path) -> Path | None:
    """A PNG of the strongest association of a run (L801), or None where there is none or its places are not known."""
    found = next((f for f in findings if f.rule in RULES and f.measured.get("event_lines")), None)
    series = _series(run, found) if found is not None else None
    if found is None or series is None:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(style.WIDTH_INCHES, 3.9), dpi=style.DPI, facecolor=style.PAPER)
    cell, lane = figure.add_axes((0.09, 0.36, 0.60, 0.455)), figure.add_axes((0.09, 0.13, 0.60, 0.13))
    lags = figure.add_axes((0.765, 0.13, 0.215, 0.685))
    anomalies = _indices(series, found.measured.get("anomaly_lines"))
    events = _indices(series, found.measured.get("event_lines"))
    ahead = _with_event(anomalies, events, int(_number(found, "far")))
    _curve(cell, series, anomalies, ahead)
    _lane(lane, cell, series, events)
    _lags(lags, anomalies, events, int(_number(found, "near")), int(_number(found, "far")))
    unit = series.unit if series.unit != "line" else "line of the log"
    lane.set_xlabel(unit, fontsize=8.5, color=style.MUTED)
    title = f"{found.measured.get('event')} and {found.measured.get('anomalies')}"
    figure.text(0.012, 0.977, style.plain(title, 112), fontsize=10.5, fontweight="bold", va="top", color=style.INK,
                parse_math=False)
    figure.text(0.012, 0.915, _legend(found, len(anomalies)), fontsize=8.5, color=style.MUTED, va="top")
    return style.save(figure, out)


def _legend(found: Finding, drawn: int) -> str:
    count = int(_number(found, "count"))
    first = "" if drawn >= count else f"; {drawn:,} of {count:,} anomalies are drawn"
    return f"filled: anomalies that the event goes ahead of; hollow: the others; ticks: the event{first}"


def _number(found: Finding, name: str) -> float:
    value = found.measured.get(name)
    return float(value) if isinstance(value, (int, float)) else 0.0


def _series(run: Run, found: Finding) -> Series | None:
    name = found.measured.get("metric")
    several = [s for s in run.series if told_as(s.source, found.source) and s.name == name and len(s)]
    if not several and name in (BETWEEN, PAUSE) and run.loss is not None:
        passed = between_records(run.loss)
        several = [] if passed is None else [replace(run.loss, name=BETWEEN, original=f"{BETWEEN} (s)", values=passed)]
    return max(several, key=len, default=None)


def _indices(series: Series, lines: object) -> list[int]:
    """The records at or after which these lines stand."""
    told = np.asarray(lines if isinstance(lines, tuple) else (), dtype=np.int64)
    return [int(i) for i in np.minimum(np.searchsorted(series.line, told), len(series) - 1)]


def _with_event(anomalies: Sequence[int], events: Sequence[int], far: int) -> list[bool]:
    at = np.asarray(events)
    return [bool(len(at)) and bool(((i - at >= 0) & (i - at <= far)).any()) for i in anomalies]


def _curve(cell: Axes, series: Series, anomalies: Sequence[int], ahead: Sequence[bool]) -> None:
    x, y = series.position, bounded(series.values)
    scale = scale_of([y])
    cell.plot(*decimate(x, y), color=style.GROUPS["train"], linewidth=0.9)
    for with_event, face in ((True, style.BAD), (False, style.PAPER)):
        chosen = [i for i, a in zip(anomalies, ahead, strict=True) if a is with_event]
        cell.plot(x[chosen], y[chosen], "o", markersize=4.6, markerfacecolor=face, markeredgecolor=style.BAD)
    cell.set_yscale(scale.kind, **({"linthresh": scale.linear_below} if scale.kind == "symlog" else {}))
    cell.set_ylim(scale.low, scale.high)
    unit = SECONDS if series.name.startswith(TIMES) and "(s)" not in series.original else ""
    cell.set_ylabel(style.plain(f"{series.original}{unit}", 24), fontsize=8.5, color=style.MUTED).set_parse_math(False)
    cell.set_xticklabels([])
    _plain(cell)


def _lane(lane: Axes, above: Axes, series: Series, events: Sequence[int]) -> None:
    lane.vlines(series.position[np.asarray(events, dtype=int)], 0, 1, color=style.INK, linewidth=0.8)
    lane.set_xlim(above.get_xlim())
    lane.set_ylim(0, 1)
    lane.set_yticks([0.5], ["event"], fontsize=8)
    _plain(lane)


def _lags(cell: Axes, anomalies: Sequence[int], events: Sequence[int], near: int, far: int) -> None:
    """How many records before each anomaly the nearest event stands; the window of the finding is shaded."""
    from matplotlib.ticker import MaxNLocator

    at = np.sort(np.asarray(events))
    most = max(10, 3 * (far + 1))
    before = np.searchsorted(at, anomalies, side="right") - 1
    gaps = [int(i - at[b]) for i, b in zip(anomalies, before, strict=True) if b >= 0]
    kept = [g for g in gaps if g <= most]
    edges = [float(b) for b in np.arange(-0.5, most + 1.5, max(1, most // 30))]
    cell.hist(kept, bins=edges, color=style.GROUPS["train"])
    cell.axvspan(near - 0.5, far + 0.5, color=style.BAD, alpha=0.15, linewidth=0)
    cell.set_xlabel("records from event to anomaly", fontsize=8.5, color=style.MUTED)
    cell.set_ylabel("anomalies", fontsize=8.5, color=style.MUTED)
    cell.set_title(f"{len(kept)} of {len(anomalies)} within {most} "
                   f"records", fontsize=8.5, color=style.MUTED, loc="left",
                   pad=3)
    for axis in (cell.xaxis, cell.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    _plain(cell)


def _plain(cell: Axes) -> None:
    cell.grid(True, color=style.GRID, linewidth=0.6)
    cell.set_axisbelow(True)
    cell.tick_params(labelsize=8, colors=style.MUTED, length=3)
    cell.spines[["top", "right"]].set_visible(False)
