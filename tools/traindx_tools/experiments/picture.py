"""An experiment as a picture: the curve of each run, controls against changed runs, and what was read in each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.experiments.arms import Run
from traindx_tools.experiments.experiment import Result
from traindx_tools.experiments.on_numbers import shared
from traindx_tools.experiments.reading import curve_of, event, held_out, metric_of, number
from traindx_tools.experiments.table import heading
from traindx_tools.experiments.trace import Curve
from traindx_tools.on_logs.run import Floats
from traindx_tools.plots import style
from traindx_tools.plots.decimate import decimate
from traindx_tools.plots.scale import bounded, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CONTROL, CHANGED = style.BAD, style.GROUPS["train"]
_HEIGHT = 3.6
_HEAD = 0.85


def draw_experiment(result: Result, out: Path) -> Path | None:
    """A PNG of the curves of all runs and, beside them, of what was read in each; None where no run has a curve."""
    drawn = [(run, curve) for run in result.runs for curve in [_curve(result, run)] if curve is not None]
    if not drawn:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(style.WIDTH_INCHES, _HEIGHT + _HEAD), dpi=style.DPI, facecolor=style.PAPER)
    share = _HEIGHT / (_HEIGHT + _HEAD)
    left = figure.add_axes((0.08, 0.12, 0.6, share - 0.12))
    right = figure.add_axes((0.77, 0.12, 0.21, share - 0.12))
    _curves(left, result, drawn)
    _values(right, result)
    title = figure.text(0.012, 0.985, style.plain(heading(result), 110), fontsize=10.5, fontweight="bold", va="top",
                        color=style.INK)
    why = figure.text(0.012, 0.925, style.plain(result.verdict.why, 150), fontsize=8.5, va="top", color=style.MUTED)
    for text in (title, why):
        text.set_parse_math(False)
    for x, word, colour in ((0.08, "control (darkest: own seed)", CONTROL), (0.3, "with the change", CHANGED)):
        figure.text(x, share + 0.015, word, fontsize=8.5, color=colour)
    return style.save(figure, out)


def _curve(result: Result, run: Run) -> Curve | None:
    outcome = result.design.outcome
    curve = held_out(run.trace, outcome) if outcome.kind == "gap" else curve_of(run.trace, metric_of(outcome))
    curve = curve if curve is not None else curve_of(run.trace, "")
    return curve if curve is not None and len(curve.values) else None


def _curves(cell: Axes, result: Result, drawn: Sequence[tuple[Run, Curve]]) -> None:
    scale = scale_of([bounded(c.values) for _, c in drawn], schedule=False)
    for run, curve in drawn:
        x = curve.steps if np.isfinite(curve.steps).all() else np.arange(1.0, len(curve.values) + 1)
        values: Floats = bounded(curve.values)
        colour = CHANGED if run.changed else CONTROL
        own = run.seed == 0
        cell.plot(*decimate(x, values), color=colour, linewidth=1.5 if own else 0.9, alpha=0.95 if own else 0.5,
                  marker="." if len(values) < 3 else "")
        bad = x[~np.isfinite(curve.values)][:60]
        if len(bad):
            cell.plot(bad, np.full(len(bad), 0.05), "x", color=colour, markersize=4, clip_on=False,
                      transform=cell.get_xaxis_transform())
    if result.verdict.at is not None and result.verdict.unit == "step":
        cell.axvline(result.verdict.at, color=style.INK, linewidth=0.9, linestyle="--")
    cell.set_yscale(scale.kind, **({"linthresh": scale.linear_below} if scale.kind == "symlog" else {}))
    cell.set_ylim(scale.low, scale.high)
    cell.set_xlabel("step; dashed: compared up to here; crosses: not finite", fontsize=8, color=style.MUTED)
    _plain(cell)


def _values(cell: Axes, result: Result) -> None:
    """One dot a run: the number, or the step of the event's onset (hollow: it did not come so far)."""
    by = shared(result.design.outcome, result.runs, result.verdict.at)
    for run in result.runs:
        colour, x = (CHANGED, 1.0) if run.changed else (CONTROL, 0.0)
        x += 0.06 * (run.seed - 2)
        if result.design.outcome.is_event:
            seen = event(result.design.outcome, run.trace)
            cell.plot([x], [seen.at], "o", color=colour, fillstyle="full" if seen.there else "none", markersize=6)
        else:
            measured = number(result.design.outcome, run.trace, result.verdict.at, by)
            if measured is not None and np.isfinite(measured.value):
                cell.plot([x], [measured.value], "o", color=colour, markersize=6)
    cell.set_xlim(-0.6, 1.6)
    cell.set_xticks([0, 1], ["control", "changed"])
    told = "onset (hollow: not seen)" if result.design.outcome.is_event else result.design.outcome.said
    title = cell.set_title(style.plain(told, 40), fontsize=8, color=style.MUTED, loc="left", pad=4)
    title.set_parse_math(False)
    _plain(cell)


def _plain(cell: Axes) -> None:
    cell.grid(color=style.GRID, linewidth=0.6)
    cell.set_axisbelow(True)
    cell.tick_params(labelsize=8, colors=style.MUTED, length=3)
    for side in ("top", "right"):
        cell.spines[side].set_visible(False)
