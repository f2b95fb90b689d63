"""A series that repeats, folded by its period: every repeat on top of the others, and what they have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.on_logs.anomalies import Kind, anomalies_of
from traindx_tools.on_logs.events.slow import SECONDS, TIMES
from traindx_tools.on_logs.run import Floats, Run, Series
from traindx_tools.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 48
CENTRES = 200
"""Places at which the trend is taken."""
MOST_POINTS = 6_000
FEWEST_REPEATS = 3
MOST_SERIES = 40
"""Series that are asked whether they repeat, the longest first."""


def folded_series(run: Run) -> tuple[Series, float] | None:
    """The main loss where it repeats, else the longest series that does, with its period in records; else None."""
    main = run.loss
    others = sorted((s for s in run.series if len(s) and s is not main), key=len, reverse=True)[:MOST_SERIES]
    for series in ([main] if main is not None else []) + others:
        period = next((a.size for a in anomalies_of(series) if a.kind is Kind.OSCILLATION), 0.0)
        if 2 <= period <= len(series) / FEWEST_REPEATS:
            return series, float(period)
    return None


def plot_folded(run: Run, out: Path) -> Path | None:
    """A PNG of the whole series above, and of one period with all repeats in it below; None where nothing repeats."""
    found = folded_series(run)
    if found is None:
        return None
    from matplotlib.figure import Figure

    series, period = found
    figure = Figure(figsize=(style.WIDTH_INCHES, 4.6), dpi=style.DPI, facecolor=style.PAPER)
    whole, fold = figure.add_axes((0.09, 0.60, 0.885, 0.25)), figure.add_axes((0.09, 0.105, 0.885, 0.36))
    stride = float(np.median(np.diff(series.position))) if len(series) > 1 else 1.0
    unit = series.unit if series.unit != "line" else "record"
    length = period * (stride if unit == "step" and stride > 0 else 1.0)
    _whole(whole, series, length if unit == "step" else period)
    _fold(fold, series, period)
    measured = style.plain(f"{series.original}{SECONDS if series.name.startswith(TIMES) else ''}", 24)
    for cell, words in ((whole, measured), (fold, "less its trend")):
        cell.set_ylabel(words, fontsize=8.5, color=style.MUTED).set_parse_math(False)
    whole.set_xlabel(unit, fontsize=8.5, color=style.MUTED, labelpad=1)
    fold.set_xlabel("share of a period", fontsize=8.5, color=style.MUTED)
    name = style.plain(series.original, 40)
    figure.text(0.012, 0.978, f"{name} repeats every {length:.4g} {unit}s", fontsize=10.5, fontweight="bold", va="top",
                color=style.INK, parse_math=False)
    figure.text(0.012, 0.925, "above: the whole run, a line at the start of each period; below: all periods on top "
                              "of each "
                              "other without their trend", fontsize=8.5, color=style.MUTED, va="top")
    return style.save(figure, out)


def _plain(cell: Axes) -> None:
    cell.grid(True, color=style.GRID, linewidth=0.6)
    cell.set_axisbelow(True)
    cell.tick_params(labelsize=8, colors=style.MUTED, length=3)
    cell.spines[["top", "right"]].set_visible(False)


def _whole(cell: Axes, series: Series, length: float) -> None:
    from traindx_tools.plots.decimate import decimate
    from traindx_tools.plots.scale import bounded, scale_of

    x, y = series.position, bounded(series.values)
    scale = scale_of([y])
    cell.plot(*decimate(x, y), color=style.GROUPS["train"], linewidth=0.9)
    cell.set_yscale(scale.kind, **({"linthresh": scale.linear_below} if scale.kind == "symlog" else {}))
    cell.set_ylim(scale.low, scale.high)
    starts = np.arange(float(x[0]), float(x[-1]), length)
    if len(starts) <= 60:
        for start in starts:
            cell.axvline(start, color=style.MUTED, linewidth=0.6, alpha=0.6)
    _plain(cell)


def _fold(cell: Axes, series: Series, period: float) -> None:
    """Dots: records; line and band: median, and from the tenth to the ninetieth hundredth, of each part of a period."""
    rest = _without_trend(series.values, period)
    share = (np.arange(len(rest)) / period) % 1.0
    known = np.isfinite(rest)
    shown = np.flatnonzero(known)[:: max(1, int(known.sum()) // MOST_POINTS)]
    cell.plot(share[shown], rest[shown], ".", color=style.GROUPS["train"], markersize=2.2, alpha=0.35, linewidth=0)
    count = int(min(BINS, max(4, period)))
    which = np.minimum((share * count).astype(int), count - 1)
    middle = (np.arange(count) + 0.5) / count
    bands = np.array([np.percentile(rest[known & (which == k)], (10, 50, 90)) if (known & (which == k)).any()
                      else (np.nan,) * 3 for k in range(count)])
    cell.fill_between(middle, bands[:, 0], bands[:, 2], color=style.BAD, alpha=0.18, linewidth=0)
    cell.plot(middle, bands[:, 1], color=style.BAD, linewidth=1.6)
    low, high = np.nanpercentile(rest[known], (0.5, 99.5))
    room = 0.08 * (high - low) or 1.0
    cell.set_ylim(low - room, high + room)
    cell.set_xlim(-0.02, 1)
    repeats = int(len(rest) / period)
    cell.set_title(f"{repeats:,} periods; line: median, band: 10 % to 90 "
                   f"%", fontsize=8.5, color=style.MUTED, loc="left", pad=3)
    _plain(cell)


def _without_trend(values: Floats, period: float) -> Floats:
    """The values less their running median over one period: a slow first record is no trend.

    A window of a whole period holds the same values wherever it begins, so that the period itself stays as it is. It is
    taken at `CENTRES` places and interpolated between them.
    """
    half = max(1, round(period / 2))
    known = np.isfinite(values)
    centres = np.unique(np.linspace(half, max(half, len(values) - 1 - half), CENTRES).astype(int))
    windows = [values[max(0, c - half): c + half] for c in centres]
    medians = np.array([np.median(w[np.isfinite(w)]) if np.isfinite(w).any() else np.nan for w in windows])
    fine = np.isfinite(medians)
    trend = np.interp(np.arange(len(values)), centres[fine], medians[fine]) if fine.any() else 0.0
    return np.asarray(np.where(known, values - trend, np.nan))
