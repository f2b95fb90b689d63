"""The ranks of a job by step: how long their steps took, or how far their loss lies from the median, and their ends.

Of many ranks several share a row, which shows the one farthest from the median rank; ranks that findings name have rows
of their own, so that one odd rank of 4,096 is seen.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Severity
from traindx_tools.on_logs.run import Floats
from traindx_tools.on_ranks.logs.examine import ManyRanks
from traindx_tools.on_ranks.logs.job import Rank, Start, ranges
from traindx_tools.on_ranks.logs.told import Thin
from traindx_tools.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS, MOST_NAMED = 96, 16
"""Rows of the map; of them at most so many of ranks that findings name."""
COLUMNS = 128
_SHOWN = (("step_time", "step time", "as printed"), ("data_time", "data-loading time", "as printed"),
          ("loss", "loss", "distance from the median rank"))
_ENDS = {"failed by itself": style.BAD, "waited in a collective": style.GROUPS["train"], "the log ends": "#e69f00",
         "lost a peer": style.MUTED, "finished": style.GROUPS["test"]}
"""How a rank ended, and its colour."""


def plot_ranks(many: ManyRanks, out: Path) -> Path:
    """A PNG of the last start: a heat map by rank and step, and the last step of each rank beside it.

    The map shows of step time, data-loading time and loss the one that differs most between ranks, the first of equal
    ones. Raises UnreadableInput where no two ranks log any of them, or where `out` cannot be written.
    """
    start = many.job.last
    name, title, unit = max(_SHOWN, key=lambda shown: _spread(start, shown[0]))
    if _spread(start, name) < 0:
        raise UnreadableInput("there is nothing to draw by rank: no two ranks log a step time, a data-loading time "
                              "or a loss")
    told = [f for f in many.findings if f.severity.rank >= Severity.MEDIUM.rank] or many.findings
    odd = tuple(dict.fromkeys(r for f in told for r in _ranks(f.measured.get("ranks"))))
    rows = _rows(start, odd)
    table, ends = _table(start, rows, name)
    try:
        return _draw(many, rows, table, ends, f"{title} by rank (rows) and step", unit, set(odd), out)
    except OSError as error:
        raise UnreadableInput(f"cannot write {out}: {error.strerror}. Name another file") from error


def _spread(start: Start, name: str) -> float:
    """How far the means of the ranks lie apart, relative to their median; -1 where fewer than two ranks log it."""
    means = [s.total / s.count for r in start.ranks.values() if (s := r.told.series.get(name)) is not None and s.steps]
    usual = abs(float(np.median(means))) if len(means) > 1 else 0.0
    return -1.0 if len(means) < 2 else (max(means) - min(means)) / usual if usual > 0 else 0.0


def _ranks(value: object) -> list[int]:
    return [v for v in value if isinstance(v, int)] if isinstance(value, tuple) else []


def _rows(start: Start, odd: Sequence[int]) -> list[list[int]]:
    """The ranks of each row, ascending: those that findings name alone, the others in equal groups."""
    alone = [r for r in odd if r in start.ranks][:MOST_NAMED]
    if len(start.ranks) <= MOST_ROWS:
        return [[r] for r in start.ranks]
    others = [r for r in start.ranks if r not in alone]
    size = -(-len(others) // (MOST_ROWS - len(alone)))
    return sorted([*([r] for r in alone), *(others[i:i + size] for i in range(0, len(others), size))])


def _table(start: Start, rows: Sequence[Sequence[int]], name: str) -> tuple[Floats, tuple[float, float]]:
    """Shape (rows, columns), NaN where nothing was kept; first and last step."""
    kept = {r: told.told.series[name] for r, told in start.ranks.items() if name in told.told.series}
    low = min(s.steps[0] for s in kept.values() if len(s.steps))
    high = max(s.steps[-1] for s in kept.values() if len(s.steps))
    columns = min(COLUMNS, max(len(s.steps) for s in kept.values()))
    of_rank = {r: _column_means(s, low, high, columns) for r, s in kept.items()}
    usual = _median(list(of_rank.values()))
    blank = np.full(columns, np.nan)
    shown = [_farthest([of_rank.get(r, blank) for r in row], usual) for row in rows]
    table = np.stack(shown)
    return (table - usual if name == "loss" else table), (low, high)


def _median(several: Sequence[Floats]) -> Floats:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of which no rank kept a value stays NaN
        return np.asarray(np.nanmedian(np.stack(several), axis=0))


def _column_means(series: Thin, low: float, high: float, columns: int) -> Floats:
    steps, values = np.asarray(series.steps), np.asarray(series.values, dtype=np.float64)
    column = np.minimum(((steps - low) / max(high - low, 1e-12) * columns).astype(int), columns - 1)
    total, count = np.bincount(column, values, columns), np.bincount(column, minlength=columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(count > 0, total / count, np.nan))


def _farthest(several: Sequence[Floats], usual: Floats) -> Floats:
    """Of the ranks of a row, in each column the value that lies farthest from the median rank's."""
    table = np.stack(several)
    apart = np.where(np.isfinite(table), np.abs(table - usual), -1.0)
    return np.asarray(table[apart.argmax(axis=0), np.arange(table.shape[1])])


def _end(start: Start, rank: Rank) -> str:
    own = next((f for f in rank.faults if f.level == 0), None)
    if own is not None and (rank.wait is None or own.line < rank.wait.line):
        return "failed by itself"
    if rank.wait is not None:
        return "waited in a collective"
    if rank.told.finished or not start.troubled:
        return "finished" if rank.told.finished else "the log ends"
    return "lost a peer" if rank.faults else "the log ends"


def _draw(many: ManyRanks, rows: Sequence[Sequence[int]], table: Floats, ends: tuple[float, float], title: str,
          unit: str, odd: set[int], out: Path) -> Path:
    from matplotlib.figure import Figure

    start = many.job.last
    title_lines = _title(many)
    head = 0.92 + 0.19 * len(title_lines)
    height = head + 0.5 + float(np.clip(0.11 * len(rows), 1.6, 5.6))
    figure = Figure(figsize=(style.WIDTH_INCHES, height), dpi=style.DPI, facecolor=style.PAPER)
    bottom, tall = 0.5 / height, 1 - (head + 0.5) / height
    cell = figure.add_axes((0.085, bottom, 0.53, tall))
    bar = figure.add_axes((0.625, bottom, 0.014, tall))
    last = figure.add_axes((0.735, bottom, 0.25, tall))
    _paint(cell, bar, table, ends)
    _label(cell, rows, odd)
    _bars(last, start, rows)
    words: tuple[tuple[float, float, str, dict[str, Any]], ...] = (
            (0.012, 0.1, "\n".join(title_lines), {"fontsize": 10.5, "fontweight": "bold", "color": style.INK}),
            (0.012, head - 0.76, f"{_sharing(rows)}bold: ranks that findings name; grey: nothing was logged",
             {"fontsize": 8.5, "color": style.MUTED}),
            (0.085, head - 0.22, f"{title} ({unit})", {"fontsize": 9, "color": style.INK}),
            (0.735, head - 0.22, "last step of each rank", {"fontsize": 9, "color": style.INK}))
    for x, inches, text, look in words:
        figure.text(x, 1 - inches / height, text, va="top", parse_math=False, **look)
    at = 0.012
    for name, said in _legend({_end(start, r) for r in start.ranks.values()}):
        figure.text(at, 1 - (head - 0.54) / height, said, fontsize=8.5, color=_ENDS[name], va="top")
        at += 0.0088 * (len(said) + 2)
    return style.save(figure, out)


def _title(many: ManyRanks) -> list[str]:
    said = f": {many.findings[0].statement}" if many.findings else ", none of which is odd"
    return textwrap.wrap(style.plain(f"{len(many.job.last.ranks):,} "
                                     f"ranks{said}", 400), 108, max_lines=2, placeholder=" …")


def _legend(seen: set[str]) -> list[tuple[str, str]]:
    """How ranks ended, each in its colour."""
    return [(name, f"\u25a0 {name}") for name in _ENDS if name in seen]


def _sharing(rows: Sequence[Sequence[int]]) -> str:
    most = max(len(r) for r in rows)
    return f"a row shows the farthest of up to {most:,} ranks; " if most > 1 else ""


def _paint(cell: Axes, bar: Axes, table: Floats, ends: tuple[float, float]) -> None:
    from matplotlib import colormaps

    known = table[np.isfinite(table)]
    low, high = (float(np.percentile(known, 1)), float(known.max())) if len(known) else (0.0, 1.0)
    high = high if high > low else low + max(abs(low) * 0.01, 1e-6)
    colours = colormaps["YlOrRd"].with_extremes(bad="#c3cad1")
    step = (ends[1] - ends[0]) / max(1, table.shape[1] - 1)
    cell.imshow(np.ma.masked_invalid(table), aspect="auto", interpolation="nearest", cmap=colours, vmin=low, vmax=high,
                extent=(ends[0] - step / 2, ends[1] + step / 2, len(table) - 0.5, -0.5))
    cell.set_xlabel("step", fontsize=8.5, color=style.MUTED)
    cell.tick_params(labelsize=8, colors=style.MUTED, length=3)
    bar.imshow(np.linspace(high, low, 256)[:, None], aspect="auto", cmap="YlOrRd", extent=(0, 1, low, high))
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.tick_params(labelsize=8, colors=style.MUTED, length=3)


def _label(cell: Axes, rows: Sequence[Sequence[int]], odd: set[int]) -> None:
    """Every n-th row by its ranks, and each row of a rank that a finding names, where no bold one stands beside it."""
    gap = max(1, math.ceil(len(rows) / 24))
    bold = [i for i, row in enumerate(rows) if len(row) == 1 and row[0] in odd]
    spaced: list[int] = []
    for i in bold:
        if not spaced or i - spaced[-1] >= gap:
            spaced.append(i)
    plain = [i for i in range(0, len(rows), gap) if all(abs(i - b) >= gap for b in spaced)]
    chosen = sorted([*spaced, *plain])
    cell.set_yticks(chosen, [ranges(rows[i], 1).split(" and")[0] for i in chosen], fontsize=8)
    for text, i in zip(cell.get_yticklabels(), chosen, strict=True):
        if i in spaced:
            text.set_fontweight("bold")
            text.set_color(style.BAD)


def _bars(cell: Axes, start: Start, rows: Sequence[Sequence[int]]) -> None:
    """The last step of the rank of each row that came least far."""
    ends: Mapping[str, list[tuple[int, float]]] = {name: [] for name in _ENDS}
    for i, row in enumerate(rows):
        told = [start.ranks[r] for r in row]
        rank = min(told, key=lambda r: -1.0 if math.isnan(r.step) else r.step)
        ends[_end(start, rank)].append((i, 0.0 if math.isnan(rank.step) else rank.step))
    for name, several in ends.items():
        if several:
            cell.barh([i for i, _ in several], [s for _, s in several], height=0.86, color=_ENDS[name])
    cell.set_ylim(len(rows) - 0.5, -0.5)
    cell.set_yticks([])
    cell.set_xlabel("step", fontsize=8.5, color=style.MUTED)
    cell.tick_params(labelsize=8, colors=style.MUTED, length=3)
    cell.spines[["top", "right"]].set_visible(False)
