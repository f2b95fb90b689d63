"""A contact sheet: samples beside their labels, those first that a finding names, so that a person sees what is meant.

Arrays of two axes (or three with 1, 3 or 4 channels) are pictures, all on one scale of grey, of one axis signals, all
on one vertical axis, so that a difference of scale is seen; texts are their beginnings; sequences and rows of a table
their first values. Pictures in folders are decoded for the sheet.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import input_fields
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from traindx_tools.on_data.examination import DataReport

ACROSS = 6
MOST_FILES = 64
"""Siblings of a file that are read for a sheet."""
MOST_NAMED = 12
"""Samples that findings name, at most."""
TYPICAL = 12
"""Samples beside them that nothing names."""
CHANNELS = frozenset({1, 3, 4})
FEWEST_PIXELS = 4
"""Along the shorter axis of a picture; a smaller array is drawn as it is, as a picture of few squares."""
ROW_INCHES, HEAD_INCHES = 2.0, 0.5
MOST_LETTERS = 160
MOST_POINTS = 2_000
MOST_PICTURE = 2**26
"""Bytes of a picture file that are decoded."""


@dataclass(frozen=True)
class Sample:
    """One row of one shard. `why`: the finding that names it or its shard, None for one beside them."""

    shard: Shard
    row: int
    why: Finding | None = None


def contact_sheet(report: DataReport, out: Path, root: Path | None = None) -> Path:
    """One PNG of at most 24 samples. `root`: the folder below which pictures of a folder's shard lie.

    Raises UnreadableInput where nothing was read that can be shown, OSError.
    """
    data = next((d for d in _by_findings(report) if any(s.columns and s.rows for s in d.shards)), None)
    if data is None:
        raise UnreadableInput("there is no sample to show: no data file was read that has rows")
    from matplotlib.figure import Figure

    chosen = samples(data, report.wrong)
    down = -(-len(chosen) // ACROSS)
    height = HEAD_INCHES + ROW_INCHES * down
    figure = Figure(figsize=(style.WIDTH_INCHES, height), dpi=style.DPI, facecolor=style.PAPER)
    axes = figure.subplots(down, ACROSS, squeeze=False)
    pictures = [_picture_of(s, root) for s in chosen]
    scale = _scale([p for p in pictures if p is not None])
    extent = _extent([v for v in (_signal_of(data, s) for s in chosen) if v is not None])
    for number, (cell, sample, picture) in enumerate(zip(axes.flat, chosen, pictures, strict=False)):
        _draw(cell, data, sample, None if picture is None else _scaled(picture, *scale), extent)
        if picture is None and number % ACROSS == 0 and _signal_of(data, sample) is not None:
            _name_ends(cell, extent)
    for cell in axes.flat[len(chosen):]:
        cell.set_axis_off()
    title = textwrap.wrap(style.plain(_title(data, report.wrong), 400), 112, max_lines=2, placeholder=" …")
    figure.text(0.012, 1 - 0.1 / height, "\n".join(title), va="top", fontsize=10.5, fontweight="bold", color=style.INK,
                parse_math=False)
    figure.subplots_adjust(left=0.012, right=0.988, bottom=0.1 / height, top=1 - (HEAD_INCHES + 0.25) / height,
                           wspace=0.06, hspace=0.32)
    return style.save(figure, out)


def samples(data: DataSet, findings: Sequence[Finding]) -> list[Sample]:
    """The rows to be shown: those that findings name, of odd shards and their siblings some each, else evenly."""
    named = [s for f in findings for s in _named(data, f)]
    kept = list({(id(s.shard), s.row): s for s in reversed(named)}.values())[::-1][:MOST_NAMED]
    odd = {id(s.shard) for s in kept}
    beside = [s for s in data.shards if s.rows and (id(s) not in odd or len(data.shards) == 1)] or list(data.shards)
    taken = {(id(s.shard), s.row) for s in kept}
    typical = [s for s in _spread(beside, TYPICAL) if (id(s.shard), s.row) not in taken]
    return [*sorted(kept, key=lambda s: _order(data, s)), *sorted(typical, key=lambda s: _order(data, s))]


def _order(data: DataSet, sample: Sample) -> tuple[str, ...]:
    """By label, so that those of one kind stand side by side."""
    return tuple(_label(sample.shard.columns[n], sample.row) for n in data.labels[:1] if n in sample.shard.columns)


def _by_findings(report: DataReport) -> list[DataSet]:
    """The sets, those first that a finding is about, then those with the richest rows."""
    about = [sum(any(True for _ in _named(d, f)) for f in report.wrong) for d in report.sets]
    order = sorted(range(len(report.sets)), key=lambda i: (-about[i], i))
    return [report.sets[i] for i in order]


def _named(data: DataSet, finding: Finding) -> Iterator[Sample]:
    """The rows that a finding names, or some of the shard that it is about."""
    for shard in data.shards:
        if not shard.rows or not _about(shard, finding):
            continue
        rows = finding.measured.get("rows")
        if isinstance(rows, (tuple, list)) and rows:
            at = [int(r) for r in rows if isinstance(r, (int, np.integer)) and 0 <= r < shard.rows]
            yield from (Sample(shard, r, finding) for r in at[:ACROSS])
        else:
            yield from (Sample(shard, s.row, finding) for s in _spread([shard], ACROSS))


def _about(shard: Shard, finding: Finding) -> bool:
    file = finding.where.file or ""
    return any(c.file == file for c in shard.columns.values()) or shard.name == file


def _spread(shards: Sequence[Shard], count: int) -> Iterator[Sample]:
    """`count` rows, evenly over the shards and within each."""
    filled = [s for s in shards if s.rows]
    if not filled:
        return
    each = max(1, count // len(filled))
    for shard in filled[:: max(1, len(filled) // count)][:count]:
        rows = np.unique(np.linspace(0, shard.rows - 1, each + 2)[1:-1].astype(int))
        yield from (Sample(shard, int(r)) for r in rows)


def _title(data: DataSet, findings: Sequence[Finding]) -> str:
    worst = next((f for f in findings for _ in _named(data, f)), None)
    return f"{worst.rule}  {worst.statement}" if worst is not None else f"{data.name}: samples of each file"


def _draw(cell: Axes, data: DataSet, sample: Sample, picture: Array | None, extent: tuple[float, float]) -> None:
    cell.set_xticks([])
    cell.set_yticks([])
    colour, width = (style.SEVERITY[sample.why.severity], 2.0) if sample.why is not None else (style.GRID, 0.8)
    for spine in cell.spines.values():
        spine.set(color=colour, linewidth=width)
    labels = ", ".join(f"{n} {_label(sample.shard.columns[n], sample.row)}" for n in data.labels[:2]
                       if n in sample.shard.columns)
    rule = f"{sample.why.rule}  " if sample.why is not None else ""
    head = f"{rule}{Path(sample.shard.name).name} {sample.shard.row(sample.row)}\n{labels}"
    cell.set_title("\n".join(style.plain(t, 34) for t in head.split("\n") if t), fontsize=6.5, color=style.INK,
                   loc="left", parse_math=False)
    if picture is not None:
        aspect: Literal["auto", "equal"] = "auto" if min(picture.shape[:2]) < FEWEST_PIXELS else "equal"
        cell.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest", aspect=aspect)
        return
    signal = _signal_of(data, sample)
    if signal is not None:
        cell.plot(np.where(np.isfinite(signal), signal, np.nan), color=style.GROUPS["train"], linewidth=0.8)
        cell.set_ylim(*extent)
        return
    field = next(iter(input_fields(sample.shard, data.labels)), None)
    if field is not None:
        _show(cell, sample.shard.columns[field], sample.row)


def _signal_of(data: DataSet, sample: Sample) -> Array | None:
    """The sample as a signal, a bounded number of its values; None where it is none."""
    field = next(iter(input_fields(sample.shard, data.labels)), None)
    column = sample.shard.columns[field] if field is not None else None
    if column is None or column.kind != "number":
        return None
    values = _values(column, sample.row)
    if np.ndim(values) != 1 or len(values) < FEWEST_PIXELS:
        return None
    return np.asarray(values[:: max(1, len(values) // MOST_POINTS)], np.float64)


def _values(column: Column, row: int) -> Array:
    ends = column.offsets
    return np.asarray(column.values[row] if ends is None else column.values[ends[row]:ends[row + 1]])


def _extent(signals: Sequence[Array]) -> tuple[float, float]:
    """From where to where the vertical axis of all signals goes: as for pictures, with a little room."""
    values = np.concatenate([v[np.isfinite(v)] for v in signals]) if signals else np.array([])
    if not len(values):
        return 0.0, 1.0
    low, high = (float(x) for x in np.percentile(values, (1, 99)))
    room = 0.05 * (high - low) or 0.5
    return low - room, high + room


def _name_ends(cell: Axes, extent: tuple[float, float]) -> None:
    """What the ends of the vertical axis are, in the cell at the left."""
    for at, where, value in ((0.97, "top", extent[1]), (0.03, "bottom", extent[0])):
        cell.text(0.02, at, f"{value:.3g}", fontsize=5.5, va=where, ha="left", transform=cell.transAxes,
                  color=style.INK, parse_math=False)


def _show(cell: Axes, column: Column, row: int) -> None:
    if column.kind == "text":
        text = column.texts[row] if row < len(column.texts) else f"{int(column.values[row])} characters"
        _write(cell, text)
        return
    values = _values(column, row)
    _write(cell, " ".join(f"{v:.4g}" if isinstance(v, (float, np.floating)) else str(v)
                          for v in np.atleast_1d(values).reshape(-1)[:24].tolist()))


def _write(cell: Axes, text: str) -> None:
    told = style.plain(text, MOST_LETTERS)
    lines = [told[i:i + 24] for i in range(0, len(told), 24)]
    cell.text(0.03, 0.95, "\n".join(lines), fontsize=5.5, va="top", transform=cell.transAxes, color=style.INK,
              parse_math=False)


def _label(column: Column, row: int) -> str:
    if column.kind == "text":
        return column.texts[row][:20] if row < len(column.texts) else ""
    value = np.asarray(column.values[row]) if column.offsets is None else np.asarray(0)
    return str(value.item()) if value.ndim == 0 else f"{value.reshape(-1)[:4].tolist()}"[:20]


def _picture_of(sample: Sample, root: Path | None) -> Array | None:
    """The sample as a picture, values as they are; None where it is none."""
    if sample.shard.format == "pictures":
        return _decoded(sample, root)
    for column in sample.shard.columns.values():
        shape = column.row_shape
        if column.kind == "number" and (len(shape) == 2 or (len(shape) == 3 and {shape[0], shape[2]} & CHANNELS)):
            return np.asarray(column.values[sample.row], np.float64)
    return None


def _scale(pictures: Sequence[Array]) -> tuple[float, float]:
    """Black and white of all pictures together: the 1st and the 99th percentile of their finite values."""
    values = np.concatenate([p[np.isfinite(p)].reshape(-1)[:MOST_POINTS * 10] for p in pictures]) if pictures else None
    if values is None or not len(values):
        return 0.0, 1.0
    low, high = (float(x) for x in np.percentile(values, (1, 99)))
    return low, high if high > low else low + 1.0


def _scaled(values: Array, low: float, high: float) -> Array:
    """The picture with values from 0 to 1, channels last; what is not a number is white."""
    picture = np.asarray(values, np.float64)
    if picture.ndim == 3:
        picture = picture if picture.shape[2] in CHANNELS else np.moveaxis(picture, 0, 2)
        picture = picture[:, :, 0] if picture.shape[2] == 1 else picture[:, :, :3]
    return np.nan_to_num((picture - low) / (high - low), nan=1.0, posinf=1.0, neginf=0.0).clip(0.0, 1.0)


def _decoded(sample: Sample, root: Path | None) -> Array | None:
    """A picture of a folder; None where it cannot be found or decoded."""
    if root is None or sample.row >= len(sample.shard.row_names):
        return None
    import matplotlib.image

    path = root / sample.shard.row_names[sample.row]
    try:
        if path.stat().st_size > MOST_PICTURE:
            return None
        read: Any = matplotlib.image.imread(path)
    except Exception:  # noqa: BLE001 - a broken picture is what the sheet is drawn for; its cell stays empty
        return None
    return np.asarray(read, np.float64)


def samples_of(findings: Sequence[Finding], out: Path, root: Path = Path(), seconds: float = 20.0) -> Path | None:
    """The sheet of the files that the worst finding on data is about, with their siblings; None without such a finding.

    `root`: the folder that places are relative to. The files are read once more, for at most `seconds`. Raises OSError.
    """
    from traindx_tools.on_data import examine

    worst = next((f for f in sorted(findings, key=lambda f: -f.severity.rank)
                  if f.rule[0] == "D" and f.severity is not Severity.INFO and f.where.file), None)
    if worst is None or not (file := root / str(worst.where.file)).exists():
        return None
    folder = file if file.is_dir() else file.parent
    alike = sorted(p for p in folder.iterdir() if p.suffix == file.suffix)[:MOST_FILES]
    siblings = [folder] if file.is_dir() else alike
    try:
        report = examine(siblings, seconds=seconds)
        return contact_sheet(report, out, folder) if report.wrong else None
    except UnreadableInput:
        return None
