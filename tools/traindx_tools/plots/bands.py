"""Values that are NaN or infinite: a band, a sign for each and a word, so that none is ever just missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.on_logs.run import Floats, Series
from traindx_tools.plots import style
from traindx_tools.plots.closeup import Bounds
from traindx_tools.plots.decimate import gaps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BANDS, _MOST_SIGNS, _MOST_WORDS = 60, 200, 3


def draw_bands(cell: Axes, placed: Sequence[tuple[Series, Floats]], bounds: Bounds, *, words: bool) -> None:
    """Marks every non-finite value of the series; `words`: says it in a line as well."""
    hurt = [(s, x) for s, x in placed if not s.finite.all()]
    if not hurt:
        return
    where = np.concatenate([x[~s.finite] for s, x in hurt])
    every = np.concatenate([x for _, x in hurt])
    order = np.argsort(every, kind="stable")
    bad = np.isin(every[order], where)
    least = bounds.width * 0.004
    for start, end, _ in gaps(every[order], bad, merge=bounds.width * 0.002)[:_MOST_BANDS]:
        cell.axvspan(start - least / 2, max(end, start) + least / 2, facecolor=style.BAD, alpha=0.13, zorder=0.5,
                     linewidth=0)
    for series, x in hurt:
        inside = ~series.finite & (x >= bounds.low) & (x <= bounds.high)
        _draw_signs(cell, x[inside], series.values[inside])
    if words:
        _write(cell, [_words(s, many=len(placed) > 1) for s, _ in hurt], float(where.min()), bounds)


def _draw_signs(cell: Axes, x: Floats, values: Floats) -> None:
    """A cross for each NaN, a triangle for each infinity, along the upper edge; at most 200 of each."""
    for marker, which in (("x", np.isnan(values)), ("^", values == np.inf), ("v", values == -np.inf)):
        at = x[which][:: max(1, -(-int(which.sum()) // _MOST_SIGNS))]
        cell.plot(at, np.full(len(at), 0.955), linestyle="", marker=marker, markersize=3.4, markeredgewidth=1.0,
                  color=style.BAD, transform=cell.get_xaxis_transform(), zorder=5)


def _write(cell: Axes, words: Sequence[str], start: float, bounds: Bounds) -> None:
    """Beside the first band's edge, inside the band where it is wide enough."""
    more = [f"+{len(words) - _MOST_WORDS} more"] if len(words) > _MOST_WORDS else []
    share = (start - bounds.low) / bounds.width
    on_right = share < 0.6
    cell.text(share + (0.012 if on_right else -0.01), 0.5, "\n".join([*words[:_MOST_WORDS], *more]),
              transform=cell.transAxes, fontsize=8.5, fontweight="bold", color=style.BAD, va="center",
              ha="left" if on_right else "right", zorder=6, parse_math=False,
              bbox={"facecolor": style.PAPER, "alpha": 0.8, "edgecolor": "none", "pad": 2})


def _words(series: Series, *, many: bool) -> str:
    bad = ~series.finite
    first = series.values[bad][0]
    value = "NaN" if np.isnan(first) else "+inf" if first > 0 else "-inf"
    name = style.plain(series.original, 24) + " " if many else ""
    count = int(bad.sum())
    if count == len(bad):
        return f"{name}{value} in all {count:,} records"
    start = f"{series.unit} {series.position[bad][0]:,.10g}"
    if count == 1:
        return f"{name}{value} at {start}"
    to_end = bool(bad[int(np.argmax(bad)):].all())
    return f"{name}{value} from {start}" + (f" to the end ({count:,})" if to_end else f" on ({count:,} in all)")
