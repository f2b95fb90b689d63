"""Both runs in one picture: the metrics that part first, one panel each, with the step at which they part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.against.metrics import MetricDifference, longest_by_name
from traindx_tools.on_logs.run import Floats, Run, Series
from traindx_tools.plots import style
from traindx_tools.plots.decimate import decimate
from traindx_tools.plots.scale import bounded, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 4
_PANEL_INCHES, _HEAD_INCHES, _FOOT_INCHES, _GAP_INCHES = 1.6, 0.78, 0.48, 0.52
_HERE, _THERE = style.BAD, style.GROUPS["train"]


def draw_comparison(metrics: Sequence[MetricDifference], here: Run, there: Run, out: Path) -> Path | None:
    """A PNG of the metrics that part, the loss among them where both log one; None where there is none to draw."""
    mine, other = longest_by_name(here), longest_by_name(there)
    ranked = sorted(metrics, key=lambda m: (m.name != "loss", m.step is None))
    chosen = [m for m in ranked if m.step is not None or m.name == "loss"][:MOST_PANELS]
    return _draw(chosen, mine, other, out) if chosen else None


def _draw(metrics: Sequence[MetricDifference], here: dict[str, Series], there: dict[str, Series], out: Path) -> Path:
    from matplotlib.figure import Figure

    height = _HEAD_INCHES + _FOOT_INCHES + len(metrics) * _PANEL_INCHES + (len(metrics) - 1) * _GAP_INCHES
    figure = Figure(figsize=(style.WIDTH_INCHES, height), dpi=style.DPI, facecolor=style.PAPER)
    reach = _reach(metrics, here, there)
    for i, metric in enumerate(metrics):
        top = _HEAD_INCHES + i * (_PANEL_INCHES + _GAP_INCHES)
        cell = figure.add_axes((0.09, 1 - (top + _PANEL_INCHES) / height, 0.885, _PANEL_INCHES / height))
        _panel(cell, metric, here[metric.name], there[metric.name])
        cell.set_xlim(*reach[metric.unit])
        if i == len(metrics) - 1:
            cell.set_xlabel(metric.unit, fontsize=8.5, color=style.MUTED)
    figure.text(0.012, 1 - 0.1 / height, "Beside the run that works", fontsize=10.5, fontweight="bold", va="top",
                color=style.INK)
    for x, text, colour in ((0.012, "broken", _HERE), (0.07, "works", _THERE),
                            (0.12, "dashed line: where they part beyond noise; crosses: not finite", style.MUTED)):
        figure.text(x, 1 - 0.34 / height, text, fontsize=8.5, va="top", color=colour)
    return style.save(figure, out)


def _reach(metrics: Sequence[MetricDifference], here: dict[str, Series], there: dict[str, Series]
           ) -> dict[str, tuple[float, float]]:
    """The ends of the axis by unit: one place in all panels is one step."""
    every: dict[str, list[Floats]] = {}
    for m in metrics:
        every.setdefault(m.unit, []).extend(_position(s[m.name], m.unit) for s in (here, there))
    ends = {unit: (min(float(np.nanmin(x)) for x in told), max(float(np.nanmax(x)) for x in told))
            for unit, told in every.items()}
    room = {unit: 0.02 * (b - a) or 1.0 for unit, (a, b) in ends.items()}
    return {unit: (a - room[unit], b + room[unit]) for unit, (a, b) in ends.items()}


def _panel(cell: Axes, metric: MetricDifference, here: Series, there: Series) -> None:
    lines = [(_position(s, metric.unit), bounded(s.values), colour) for s, colour in ((there, _THERE), (here, _HERE))]
    scale = scale_of([values for _, values, _ in lines], schedule=metric.name == "learning_rate")
    for x, values, colour in lines:
        cell.plot(*decimate(x, values), color=colour, linewidth=1.1, alpha=0.9)
        bad = x[~np.isfinite(values)]
        if len(bad):
            shown = bad[:: max(1, len(bad) // 60)]
            cell.plot(shown, np.full(len(shown), 0.06), "x", color=colour, markersize=4, clip_on=False,
                      transform=cell.get_xaxis_transform())
    cell.set_yscale(scale.kind, **({"linthresh": scale.linear_below} if scale.kind == "symlog" else {}))
    cell.set_ylim(scale.low, scale.high)
    if metric.step is not None:
        cell.axvline(metric.step, color=style.INK, linewidth=0.9, linestyle="--")
    told = metric.statement().partition(", a gap of ")[0]
    title = cell.set_title(style.plain(told, 120), fontsize=8.5, color=style.INK, loc="left", pad=4)
    title.set_parse_math(False)
    cell.grid(color=style.GRID, linewidth=0.6)
    cell.set_axisbelow(True)
    cell.tick_params(labelsize=8, colors=style.MUTED, length=3)
    for side in ("top", "right"):
        cell.spines[side].set_visible(False)


def _position(series: Series, unit: str) -> Floats:
    found: Floats = np.arange(1.0, len(series) + 1) if unit == "line" else getattr(series, unit)
    return found
