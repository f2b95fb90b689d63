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

_LETTER, _LETTER_INCHES = 0.0133, 0.07
"""Share of a panel's width that a letter of the words takes at most: of the narrower panel beside a close-up; and how
wide it is, for a picture that is narrower."""
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
    """Beside the first band's edge: right of it, on two lines where one has no room, since left of it the curves and
    the marks of what led there would run through the words."""
    more = [f"+{len(words) - _MOST_WORDS} more"] if len(words) > _MOST_WORDS else []
    share = (start - bounds.low) / bounds.width
    letter = max(_LETTER, _LETTER_INCHES / style.inches_of(cell))
    told = [*words[:_MOST_WORDS], *more]
    if not _has_room(told, share, letter):
        told = [part for w in told for part in _in_two(w)]
    on_right = _has_room(told, share, letter)
    cell.text(share + (0.012 if on_right else -0.01), 0.5, "\n".join(told),
              transform=cell.transAxes, fontsize=8.5, fontweight="bold", color=style.BAD, va="center",
              ha="left" if on_right else "right", zorder=6, parse_math=False,
              bbox={"facecolor": style.PAPER, "alpha": 0.9, "edgecolor": "none", "pad": 2})


def _has_room(words: Sequence[str], share: float, letter: float = _LETTER) -> bool:
    return share + 0.012 + letter * max(map(len, words)) < 1.0


def _in_two(words: str) -> list[str]:
    """The words on two lines: "NaN from step 1,260" and "to the end (75)"."""
    for link in (" to the end", " on ("):
        head, found, tail = words.partition(link)
        if found:
            return [head, f"{link.strip()}{tail}"]
    return [words]


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
