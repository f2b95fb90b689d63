"""One panel: its lines, and a dashed rule where each finding starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from traindx_tools.on_logs.run import Floats, Series
from traindx_tools.plots import style
from traindx_tools.plots.axis import Axis
from traindx_tools.plots.bands import draw_bands
from traindx_tools.plots.closeup import Bounds
from traindx_tools.plots.decimate import decimate, trend_of
from traindx_tools.plots.layout import is_flat
from traindx_tools.plots.marks import Marks
from traindx_tools.plots.panels import Panel
from traindx_tools.plots.scale import Scale, bounded, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Placed = Sequence[tuple[Series, Floats]]

_DOTTED = 60
"""Values up to which each one gets a dot: beyond it the dots hide the line."""

_NARROW = 4.0
"""Inches of a panel that has room for two names of lines beside its title, and no more."""


def draw_panel(cell: Axes, panel: Panel, axis: Axis, bounds: Bounds, marks: Marks, *, label: str | None,
               closeup: bool = False) -> None:
    """Draws what lies within `bounds`; `label`: the axis' unit, for the panel that carries its numbers."""
    placed = [(s, x) for s in panel.series if (x := axis.place(s)) is not None]
    lines = [_within(x, bounded(s.values), bounds) for s, x in placed]
    scale = scale_of([y for _, y in lines], schedule=panel.title == "learning rate")
    _prepare(cell, scale, bounds, label)
    for mark in marks.rows:
        for start, _ in mark.spans[:12]:
            if bounds.low <= start <= bounds.high:
                cell.axvline(start, color=style.SEVERITY[mark.severity], linewidth=1.0, linestyle=(0, (4, 3)),
                             alpha=0.75, zorder=1)
    handles = [_draw_line(cell, x, y, _look(placed, i)) for i, (x, y) in enumerate(lines)]
    draw_bands(cell, placed, bounds, words=not closeup)
    if not closeup:
        _write_heading(cell, panel, placed, scale, handles)


def _within(x: Floats, y: Floats, bounds: Bounds) -> tuple[Floats, Floats]:
    """The records within the bounds and one on either side, so that a line runs to the edge."""
    inside = np.flatnonzero((x >= bounds.low) & (x <= bounds.high))
    if not len(inside):
        return x[:0], y[:0]
    part = slice(max(inside[0] - 1, 0), inside[-1] + 2)
    return x[part], y[part]


def _prepare(cell: Axes, scale: Scale, bounds: Bounds, label: str | None) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    if scale.kind == "symlog":
        cell.set_yscale("symlog", linthresh=scale.linear_below)
    else:
        cell.set_yscale(scale.kind)
    cell.set_ylim(scale.low, scale.high)
    cell.set_xlim(bounds.low, bounds.high)
    if scale.kind == "linear":
        cell.yaxis.set_major_locator(MaxNLocator(nbins=5 if cell.get_window_extent().height > 150 else 2))
        cell.yaxis.set_major_formatter(FuncFormatter(lambda v, _: _short(v)))
    else:
        if scale.kind == "log":
            cell.yaxis.set_major_locator(LogLocator(numticks=6))
        cell.yaxis.set_minor_locator(NullLocator())
        cell.yaxis.set_minor_formatter(NullFormatter())
    wide = cell.get_window_extent().width
    cell.xaxis.set_major_locator(MaxNLocator(nbins=8 if wide > 700 else 4, integer=bounds.width > 2))
    cell.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}"))
    cell.grid(True, color=style.GRID, linewidth=0.7, zorder=0)
    cell.set_axisbelow(True)
    cell.spines[["top", "right"]].set_visible(False)
    cell.spines[["left", "bottom"]].set_color("#aab2ba")
    cell.tick_params(labelsize=8, colors=style.MUTED, length=3, labelbottom=label is not None)
    if label is not None:
        cell.set_xlabel(label, fontsize=8.5, color=style.MUTED, labelpad=2)


def _short(value: float) -> str:
    """3e-4 rather than 0.0003 or 3e-04."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.6g}"
    mantissa, exponent = f"{value:.5e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def _look(placed: Placed, index: int) -> dict[str, Any]:
    """Train, validation and test have fixed colours; where several share a group, the palette in turn."""
    group = placed[index][0].group
    if sum(s.group == group for s, _ in placed) == 1:
        return {"color": style.GROUPS.get(group, style.CYCLE[3])}
    return {"color": style.CYCLE[index % len(style.CYCLE)], "linestyle": style.DASHES[(index // 4) % 4]}


def _draw_line(cell: Axes, x: Floats, y: Floats, look: dict[str, Any]) -> Any:
    dots = "o" if len(x) <= _DOTTED else ""
    restarts = np.flatnonzero(np.diff(x) < 0) + 1
    x, y = np.insert(x, restarts, x[restarts]), np.insert(y, restarts, np.nan)
    trend = trend_of(x, y)
    shown_x, shown_y = decimate(x, y)
    line = cell.plot(shown_x, shown_y, linewidth=1.5 if len(x) < 1500 and trend is None else 0.8, marker=dots,
                     markersize=2.8, zorder=3, solid_joinstyle="round", alpha=1.0 if trend is None else 0.4, **look)[0]
    if trend is None:
        return line
    return cell.plot(*trend, linewidth=1.8, zorder=4, solid_joinstyle="round", **look)[0]


def _write_heading(cell: Axes, panel: Panel, placed: Placed, scale: Scale, handles: Sequence[Any]) -> None:
    """Title and scale on the left, the lines' names on the right, above the panel."""
    title = cell.annotate(style.plain(panel.title, 40), (0, 1), xytext=(0, 5), xycoords="axes fraction", fontsize=9.5,
                          textcoords="offset points", fontweight="bold", color=style.INK, parse_math=False)
    cell.annotate(_note(panel, scale), (1, 0), xytext=(7, 0), xycoords=title, textcoords="offset points", fontsize=8.5,
                  color=style.MUTED, va="bottom", parse_math=False)
    labels = _labels(placed, panel)
    if not labels:
        return
    if panel.more:
        labels[-1] += f"  (+{panel.more} more)"
    most = 4 if style.inches_of(cell) > _NARROW else 2
    legend = cell.legend(handles, labels, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncol=min(len(labels), most),
                         frameon=False, fontsize=8.5, handlelength=1.6, columnspacing=1.2, borderpad=0.0,
                         borderaxespad=0.3, handletextpad=0.5)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _note(panel: Panel, scale: Scale) -> str:
    if is_flat(panel):
        held = list(dict.fromkeys(float(s.values[0]) for s in panel.series))
        return "never changes: " + (", ".join(f"{v:.6g}" for v in held) if held != [0.0] else "exactly 0")
    return {"log": "log scale", "symlog": "symmetric log scale"}.get(scale.kind, "")


def _labels(placed: Placed, panel: Panel) -> list[str]:
    """The names as they were written, without a folder-like beginning that several of them share ("tok/s" of two ranks
    is one name, and no folder)."""
    names = [s.original.removeprefix("loss/") for s, _ in placed]
    heads = {n.rpartition("/")[0] for n in names}
    if len(set(names)) > 1 and len(heads) == 1:
        names = [n.rpartition("/")[2] for n in names]
    return [_label(s, name, panel) for (s, _), name in zip(placed, names, strict=True)]


def _label(series: Series, name: str, panel: Panel) -> str:
    rank = "" if series.rank is None else f", rank {series.rank}"
    if panel.title == "loss" and series.name == "loss":
        return series.group + rank
    told = series.group == "train" or series.original.lower().startswith(("val", "eval", "test", "dev"))
    return style.plain((name if told else f"{series.group} {name}").replace("_", " "), 30) + rank
