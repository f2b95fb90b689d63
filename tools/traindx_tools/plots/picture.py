"""The picture of a run: its panels over one axis, every finding on a strip above them, non-finite values in bands."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.run import Run
from traindx_tools.plots import style
from traindx_tools.plots.alignment import plot_alignment
from traindx_tools.plots.axis import Axis, axis_of
from traindx_tools.plots.closeup import Bounds, bounds_of, closeup_of
from traindx_tools.plots.folded import plot_folded
from traindx_tools.plots.heatmap import gradient_heatmap
from traindx_tools.plots.layout import Layout, layout_of
from traindx_tools.plots.lines import draw_panel
from traindx_tools.plots.marks import Marks, marks_of
from traindx_tools.plots.panels import Panel, panels_of
from traindx_tools.plots.strip import draw_strip

_TITLE_WIDTH = 104
NARROW_INCHES = 4.4
"""Of the picture for a phone: its letters are as large there as those of the text."""
NARROW = ".narrow.png"
"""Ends the name of a picture for a phone, beside the usual one."""
_log = logging.getLogger(__name__)


def draw_pictures(run: Run, findings: Sequence[Finding], folder: Path) -> Mapping[str, Path]:
    """Every picture that the run's metrics allow, by its name in `analysis_artifacts`; a run without any has none.

    "loss_visualization": `plot_run`; "gradient_analysis": `gradient_heatmap`; "event_alignment": `plot_alignment`;
    "folded_period": `plot_folded`. Raises OSError where the folder cannot be
    written to; a picture that cannot be drawn is left out.
    """
    pictures = {
        "loss_visualization": drawn(lambda: plot_run(run, findings, folder / "loss.png")
                                     if any(len(s) for s in run.series) else None),
        "gradient_analysis": drawn(lambda: gradient_heatmap(run, folder / "gradients.png")),
        "event_alignment": drawn(lambda: plot_alignment(run, findings, folder / "events.png")),
        "folded_period": drawn(lambda: plot_folded(run, folder / "period.png")),
    }
    return {name: path for name, path in pictures.items() if path is not None}


def drawn(draw: Callable[[], Path | None]) -> Path | None:
    """What a drawing function returns, or None where it fails on absurd numbers. Raises OSError."""
    try:
        return draw()
    except OSError:
        raise
    except Exception:  # noqa: BLE001 - matplotlib fails in many ways on absurd numbers; the diagnosis stands without
        _log.debug("a picture could not be drawn", exc_info=True)
        return None


def plot_run(run: Run, findings: Sequence[Finding], out: Path, inches: float = style.WIDTH_INCHES) -> Path:
    """One PNG, 1,500 px wide (150 an inch): loss, its terms, gradient norm, learning rate and up to six panels in all.

    Non-finite values are marked, never dropped; the scale is logarithmic where the values span over two decades; an
    onset too narrow to be seen in the whole run has a close-up beside it.
    Raises UnreadableInput when the run holds no metric at all.
    """
    axis = axis_of(run)
    panels = panels_of(run, axis, findings)
    if not panels:
        raise UnreadableInput("there is no metric to draw: the artifacts hold no series of values. "
                              "Give the training log or the metrics file of the run")
    marks = marks_of(findings, axis)
    wide = int(_TITLE_WIDTH * inches / style.WIDTH_INCHES)
    title = textwrap.wrap(_headline(run, findings), wide, max_lines=2 if inches > NARROW_INCHES else 4,
                          placeholder=" …")
    _draw(panels, axis, marks, title, style.plain(_subtitle(run, axis), int(1.4 * wide)), out, inches)
    return out


def _draw(panels: Sequence[Panel], axis: Axis, marks: Marks, title: Sequence[str], subtitle: str, out: Path,
          inches: float) -> None:
    from matplotlib.figure import Figure

    whole = bounds_of(panels, axis, marks)
    narrow = inches < style.WIDTH_INCHES
    near = None if narrow else closeup_of(panels, axis, marks, whole)
    layout = layout_of(panels, len(marks.rows), len(title), 0 if narrow else len(marks.elsewhere[:3]),
                       near is not None, inches)
    figure = Figure(figsize=(inches, layout.height), dpi=style.DPI, facecolor=style.PAPER)
    if marks.rows:
        draw_strip(figure.add_axes(layout.strip), marks, whole)
    for i, panel in enumerate(panels):
        label = axis.label if i == len(panels) - 1 else None
        draw_panel(figure.add_axes(layout.cells[i]), panel, axis, whole, marks, label=label)
        if near is not None:
            draw_panel(figure.add_axes(layout.closeups[i]), panel, axis, near, marks, label=label, closeup=True)
    elsewhere = () if narrow else marks.elsewhere
    for x, top, text, look in _frame(layout, title, subtitle, elsewhere, marks.more, axis, near):
        figure.text(x, 1 - top / layout.height, text, va="top", parse_math=False, **look)
    style.save(figure, out)


def _headline(run: Run, findings: Sequence[Finding]) -> str:
    faults = [f for f in findings if f.severity is not Severity.INFO]
    if faults:
        worst = max(faults, key=lambda f: f.severity.rank)
        return style.plain(f"{worst.rule}  {worst.statement}", 400)
    bad = sum(not s.finite.all() for s in run.series)
    return f"{bad} of {len(run.series)} metrics hold non-finite values" if bad else "No curve looks wrong"


def _subtitle(run: Run, axis: Axis) -> str:
    placed = [x for s in run.series if len(s) and (x := axis.place(s)) is not None]
    first, last = min(float(x.min()) for x in placed), max(float(x.max()) for x in placed)
    sources = list(dict.fromkeys(s.source.rsplit("/", 1)[-1] for s in run.series if len(s)))
    more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    read = style.plain(", ".join(sources[:3]), 70) + more
    spread = "; epochs and steps are matched at their ends" if axis.spread else ""
    return f"{sum(len(s) for s in run.series):,} values from {read}, {axis.unit} {first:,.10g} to {last:,.10g}{spread}"


def _frame(layout: Layout, title: Sequence[str], subtitle: str, elsewhere: Sequence[str], more: int, axis: Axis,
           near: Bounds | None) -> list[tuple[float, float, str, dict[str, Any]]]:
    """The words around the panels: (x as a share, inches from the top, text, look)."""
    quiet: dict[str, Any] = {"fontsize": 8.5, "color": style.MUTED}
    loud: dict[str, Any] = {"fontsize": 10.5, "fontweight": "bold", "color": style.INK, "linespacing": 1.25}
    left = 0.012
    texts = [(left, 0.1, "\n".join(title), loud), (left, 0.14 + 0.2 * len(title), subtitle, quiet)]
    if near is not None:
        first, last = near.low + near.margin, near.high - near.margin
        words = f"close-up: {axis.unit} {first:,.10g} to {last:,.10g}"
        texts.append((layout.closeups[0][0], layout.heading_top, words, quiet))
    lines = [style.plain(t, 120) for t in elsewhere[:3]]
    hidden = more + max(len(elsewhere) - 3, 0)
    if lines:
        lines[-1] += f"  (+{hidden} more)" if hidden else ""
        texts.append((left, layout.notes_top, "also found:", quiet))
        texts.append((left + 0.078, layout.notes_top, "\n".join(lines), {**quiet, "linespacing": 1.3}))
    return texts
