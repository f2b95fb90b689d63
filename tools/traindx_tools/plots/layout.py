"""Where everything stands on the picture, in inches from its upper edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traindx_tools.plots import style
from traindx_tools.plots.panels import Panel

Rect = tuple[float, float, float, float]
"""Left, bottom, width, height as shares of the picture."""

_LEFT, _RIGHT, _BETWEEN, _NEAR_WIDTH = 0.085, 0.982, 0.06, 0.31
_PANEL, _FLAT, _TITLE_ROW, _STRIP_ROW = 1.5, 0.6, 0.33, 0.23


@dataclass(frozen=True)
class Layout:
    """The picture's height in inches and the place of each part."""

    height: float
    strip: Rect
    cells: tuple[Rect, ...]
    closeups: tuple[Rect, ...]
    heading_top: float
    notes_top: float


def layout_of(panels: Sequence[Panel], rows: int, title_lines: int, notes: int, closeup: bool,
              inches: float = style.WIDTH_INCHES) -> Layout:
    """Panels of equal height, those whose values never change a low one; a second column for the close-up.

    `inches`: how wide the picture is; its margins stay as wide as those of a usual one.
    """
    left, right = _LEFT * style.WIDTH_INCHES / inches, 1 - (1 - _RIGHT) * style.WIDTH_INCHES / inches
    strip_top = 0.38 + 0.2 * title_lines
    panels_top = strip_top + (_STRIP_ROW * rows + (0.1 if rows else 0))
    heights = [_FLAT if is_flat(p) else _PANEL for p in panels]
    tops = [panels_top + _TITLE_ROW * (i + 1) + sum(heights[:i]) for i in range(len(panels))]
    axis_bottom = tops[-1] + heights[-1]
    notes_top = axis_bottom + 0.48
    height = notes_top + (0.16 * notes + 0.08 if notes else 0)
    width = (right - left - _BETWEEN - _NEAR_WIDTH) if closeup else right - left

    def rect(top: float, tall: float, begin: float, wide: float) -> Rect:
        return (begin, 1 - (top + tall) / height, wide, tall / height)

    near = left + width + _BETWEEN
    return Layout(
        height=height,
        strip=rect(strip_top, max(_STRIP_ROW * rows, 0.01), left, width),
        cells=tuple(rect(t, h, left, width) for t, h in zip(tops, heights, strict=True)),
        closeups=tuple(rect(t, h, near, right - near) for t, h in zip(tops, heights, strict=True)),
        heading_top=tops[0] - 0.2,
        notes_top=notes_top,
    )


def is_flat(panel: Panel) -> bool:
    """Every series of the panel holds one finite value and nothing else."""
    return all(s.finite.all() and bool((s.values == s.values[0]).all()) for s in panel.series)


