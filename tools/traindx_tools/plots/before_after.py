"""Two runs over one axis: the same metrics before a change and with it, what is not finite marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.on_logs.run import Floats
from traindx_tools.plots import style
from traindx_tools.plots.decimate import decimate, gaps
from traindx_tools.plots.scale import bounded, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 4
"""Panels of a picture."""
BEFORE, AFTER = "#d55e00", "#0072b2"
_TALL, _HEAD, _FOOT = 1.9, 0.2, 0.5
"""Inches of a panel, of the words above the first, of the axis' numbers below the last."""


@dataclass(frozen=True, eq=False)
class Line:
    """One metric of one run: `at` and `values` of shape (n,), in `unit` ("step", "epoch" or "line"); NaN is a value
    that is not finite."""

    at: Floats
    values: Floats
    unit: str = "step"


@dataclass(frozen=True, eq=False)
class Pair:
    """A metric of both runs; None where one did not measure it."""

    name: str
    before: Line | None
    after: Line | None


def plot_before_after(pairs: Sequence[Pair], out: Path, title: str = "Before and after",
                      inches: float = style.WIDTH_INCHES) -> Path | None:
    """One PNG, 150 pixels an inch, a panel for each pair; None where no pair holds a value. Raises OSError."""
    from matplotlib.figure import Figure

    shown = [p for p in pairs if any(line is not None and len(line.values) for line in (p.before, p.after))][:MOST]
    if not shown:
        return None
    narrow, left = inches < style.WIDTH_INCHES, 0.08 * style.WIDTH_INCHES / inches
    high = _HEAD + _TALL * len(shown) + _FOOT
    figure = Figure(figsize=(inches, high), dpi=style.DPI, facecolor=style.PAPER)
    for number, pair in enumerate(shown):
        bottom = (_FOOT + _TALL * (len(shown) - 1 - number)) / high
        cell = figure.add_axes((left, bottom, 0.98 - left, (_TALL - 0.6) / high))
        _draw(cell, pair, last=number == len(shown) - 1, narrow=narrow)
    figure.text(0.012, 1 - 0.1 / high, style.plain(title, int(11 * inches)), va="top", fontsize=10.5, fontweight="bold",
                color=style.INK, parse_math=False)
    for x, colour, word in ((1 - 2.0 / inches, BEFORE, "before"), (1 - 1.0 / inches, AFTER, "after")):
        figure.text(x, 1 - 0.1 / high, f"— {word}", va="top", fontsize=10, color=colour, fontweight="bold")
    return style.save(figure, out)


def _draw(cell: Axes, pair: Pair, *, last: bool, narrow: bool = False) -> None:
    drawn = [(line, colour, bounded(line.values)) for line, colour in ((pair.before, BEFORE), (pair.after, AFTER))
             if line is not None and len(line.values)]
    scale = scale_of([y for _, _, y in drawn])
    if scale.kind == "symlog":
        cell.set_yscale("symlog", linthresh=scale.linear_below)
    else:
        cell.set_yscale(scale.kind)
    cell.set_ylim(scale.low, scale.high)
    for line, colour, y in drawn:
        at, values = decimate(line.at, y)
        wide = 3.4 if colour == BEFORE else 1.5  # where both agree, the one below is seen beside the other
        cell.plot(at, values, color=colour, linewidth=wide, alpha=0.6 if colour == BEFORE else 1.0, zorder=3,
                  marker="o" if len(at) <= 40 else "", markersize=2 * wide)
    said = [_not_finite(cell, line, colour, y, row) for row, (line, colour, y) in enumerate(drawn)]
    absent = [word for word, line in (("before", pair.before), ("after", pair.after)) if line is None]
    words = [*filter(None, said), *(f"not measured {word}" for word in absent)]
    cell.grid(True, color=style.GRID, linewidth=0.7, zorder=0)
    cell.spines[["top", "right"]].set_visible(False)
    cell.tick_params(labelsize=8, colors=style.MUTED, length=3)
    cell.annotate(style.plain(pair.name.replace("_", " "), 40), (0, 1), xytext=(0, 6), xycoords="axes fraction",
                  textcoords="offset points", fontsize=9.5, fontweight="bold", color=style.INK, parse_math=False)
    beside = {"xytext": (0, -4), "va": "top"} if narrow else {"xytext": (0, 6)}  # no room beside the name
    cell.annotate("; ".join(words), (1, 1), **beside, xycoords="axes fraction", textcoords="offset points", ha="right",
                  fontsize=8.5, color=style.MUTED, parse_math=False)
    if last:
        cell.set_xlabel(drawn[0][0].unit, fontsize=8.5, color=style.MUTED, labelpad=2)


def _not_finite(cell: Axes, line: Line, colour: str, y: Floats, row: int) -> str:
    """A bar along the lower edge wherever a run's values are not finite, and the words for it."""
    bad = ~np.isfinite(y)
    if not bad.any():
        return ""
    spans = gaps(line.at, bad, merge=0.0)
    for first, end, _ in spans[:40]:
        low = 0.05 * row
        cell.axvspan(first, max(end, first), ymin=low, ymax=low + 0.04, color=colour, alpha=0.55, zorder=2)
    word = "before" if colour == BEFORE else "after"
    return f"{word} not finite from {line.unit} {spans[0][0]:g} on" if bad[-1] and len(spans) == 1 else (
        f"{word} not finite in {int(bad.sum())} of {len(bad)} records")
