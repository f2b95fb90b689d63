"""The strip of findings: one row a rule, a bar where it was seen, its id and title beside the bar's start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx_tools.plots import style
from traindx_tools.plots.closeup import Bounds
from traindx_tools.plots.marks import Mark, Marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ON_RIGHT = 0.55
"""Share of the axis up to which a bar's label stands right of its start."""
_LETTER = 0.078
"""Inches of a letter of a label."""
_MOST, _LEAST = 60, 12
"""Letters of a title."""


def draw_strip(cell: Axes, marks: Marks, bounds: Bounds) -> None:
    """Draws every row of `marks` into `cell`, aligned with the panels below it."""
    cell.set_xlim(bounds.low, bounds.high)
    cell.set_ylim(len(marks.rows), 0)
    cell.axis("off")
    for i, mark in enumerate(marks.rows):
        _draw_row(cell, i, mark, bounds)


def _draw_row(cell: Axes, row: int, mark: Mark, bounds: Bounds) -> None:
    colour = style.SEVERITY[mark.severity]
    least = bounds.width * 0.004
    for start, end in mark.spans:
        cell.barh(row + 0.5, max(end - start, least), left=start, height=0.8, color=colour, alpha=0.18, linewidth=0)
        cell.barh(row + 0.5, least, left=start, height=0.8, color=colour, linewidth=0)
    on_right = mark.start - bounds.low < _ON_RIGHT * bounds.width
    x = mark.start + bounds.width * (0.01 if on_right else -0.006)
    share = (bounds.low + bounds.width - x if on_right else x - bounds.low) / bounds.width
    room = int(share * style.inches_of(cell) / _LETTER) - len(mark.rule) - 2
    title = style.plain(mark.title, max(min(room, _MOST), _LEAST))
    cell.text(x, row + 0.53, f"{mark.rule}  {title}", fontsize=8.5, fontweight="bold",
              color=colour, va="center", ha="left" if on_right else "right", parse_math=False)
