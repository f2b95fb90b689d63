"""Gradient norms by module over the run, one row a module: where they vanish, explode or stay exactly zero."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.on_logs.run import Floats, Run, Series
from traindx_tools.plots import style
from traindx_tools.plots.axis import Axis, axis_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_MODULES = 60
_COLUMNS = 240
_VANISHED, _EXPLODED = 1e-8, 1e3
"""Norms at which a module counts as dead or exploding: the Systematic Debugging skill's, as rules L102 and L103."""
_ZERO, _NOT_FINITE = "#111418", "#d55e00"


def gradient_heatmap(run: Run, out: Path) -> Path | None:
    """A PNG of the series "grad_norm/<module>", or None where the run holds none.

    Colour is log10 of the norm (the largest of a column's values); exactly zero is black, non-finite orange. Of more
    than 60 modules the ones with the widest range are shown, and the title says so.
    """
    modules = [s for s in run.series if s.name.startswith("grad_norm/") and len(s)]
    if not modules:
        return None
    axis = axis_of(run)
    placed = [(s, x) for s in _widest(modules) if (x := axis.place(s)) is not None]
    if not placed:
        return None
    low, high = min(float(x.min()) for _, x in placed), max(float(x.max()) for _, x in placed)
    columns = min(_COLUMNS, max(len(s) for s, _ in placed))
    table = np.stack([_row(s, x, low, high, columns) for s, x in placed])
    return _draw(table, [s.name.removeprefix("grad_norm/") for s, _ in placed], (low, high), axis, len(modules), out)


def _widest(modules: Sequence[Series]) -> list[Series]:
    if len(modules) <= MOST_MODULES:
        return list(modules)
    spread = {id(s): _decades(s) for s in modules}
    chosen = {id(s) for s in sorted(modules, key=lambda s: -spread[id(s)])[:MOST_MODULES]}
    return [s for s in modules if id(s) in chosen]


def _decades(series: Series) -> float:
    if not series.finite.all() or (series.values == 0).any():
        return np.inf
    sizes = np.log10(np.abs(series.values))
    return float(sizes.max() - sizes.min() + abs(np.median(sizes)))


def _row(series: Series, x: Floats, low: float, high: float, columns: int) -> Floats:
    """Shape (columns,): the largest norm of each column; inf where any is not finite, NaN where there is no value."""
    column = np.minimum(((x - low) / max(high - low, 1e-12) * columns).astype(int), columns - 1)
    norms = np.where(series.finite, np.abs(series.values), np.inf)
    row = np.full(columns, -1.0)
    np.maximum.at(row, column, norms)
    row[row < 0] = np.nan
    filled = np.flatnonzero(~np.isnan(row))
    nearest = np.searchsorted(filled, np.arange(columns), side="right") - 1
    return row[filled[np.maximum(nearest, 0)]]


def _draw(table: Floats, names: Sequence[str], ends: tuple[float, float], axis: Axis, total: int, out: Path) -> Path:
    from matplotlib.figure import Figure

    rows = len(names)
    height = 1.15 + max(0.21 * rows, 1.0)
    figure = Figure(figsize=(style.WIDTH_INCHES, height), dpi=style.DPI, facecolor=style.PAPER)
    cell = figure.add_axes((0.235, 0.5 / height, 0.66, 1 - 1.15 / height))
    bar = figure.add_axes((0.91, 0.5 / height, 0.016, 1 - 1.15 / height))
    known = table[np.isfinite(table) & (table > 0)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (1e-3, 1.0)
    _paint(cell, bar, table, ends, (np.log10(low), max(np.log10(high), np.log10(low) + 1)))
    cell.set_yticks(range(rows), [style.plain(n, 34) for n in names], fontsize=8)
    for text in cell.get_yticklabels():
        text.set_parse_math(False)
    cell.set_xlabel(axis.label, fontsize=8.5, color=style.MUTED)
    cell.tick_params(labelsize=8, colors=style.MUTED, length=3)
    shown = f"{rows} of {total} modules, those with the widest range" if total > rows else f"{rows} modules"
    figure.text(0.012, 1 - 0.1 / height, "Gradient norm by module", fontsize=10.5, fontweight="bold", va="top",
                color=style.INK)
    legend = (f"{shown}; black: exactly 0, orange: NaN or infinite, grey line in the scale: dead below {_VANISHED:g}, "
              f"exploding above {_EXPLODED:g}")
    figure.text(0.012, 1 - 0.33 / height, legend, fontsize=8.5, color=style.MUTED, va="top")
    return style.save(figure, out)


def _paint(cell: Axes, bar: Axes, table: Floats, ends: tuple[float, float], decades: tuple[float, float]) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import Normalize, to_rgba

    low, high = decades
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.log10(table)
    shades = colormaps["viridis"](Normalize(low, high)(np.where(np.isfinite(sizes), sizes, low)))
    shades[table == 0] = to_rgba(_ZERO)
    shades[np.isinf(table)] = to_rgba(_NOT_FINITE)
    width = (ends[1] - ends[0]) or 1.0
    cell.imshow(shades, aspect="auto", interpolation="nearest",
                extent=(ends[0], ends[0] + width, len(table) - 0.5, -0.5))
    bar.imshow(np.linspace(high, low, 256)[:, None], aspect="auto", cmap="viridis", extent=(0, 1, low, high))
    bar.set_xticks([])
    bar.yaxis.tick_right()
    step = max(1, int(np.ceil((high - low) / 8)))
    ticks = list(range(int(np.ceil(low)), int(np.floor(high)) + 1, step))
    bar.set_yticks(ticks, [f"1e{t}" for t in ticks])
    bar.tick_params(labelsize=8, colors=style.MUTED, length=3)
    for bound in (_VANISHED, _EXPLODED):
        if low < np.log10(bound) < high:
            bar.axhline(np.log10(bound), color="#c8ced4", linewidth=1.5)
