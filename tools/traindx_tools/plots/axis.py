"""The one horizontal axis of a picture: which unit it counts, and where a series or a finding lies on it.

A log may number its training lines in steps and its validation lines in epochs. Everything is put on the unit of the
main loss: directly, by a series that holds both units, by the lines around it in the same file, or, where nothing
tells, spread evenly so that both end together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from traindx_tools.finding import Location
from traindx_tools.on_logs.run import Floats, Run, Series


@dataclass(frozen=True, eq=False)
class Axis:
    """A unit ("step", "epoch" or "line") and what is known to convert others to it."""

    unit: str
    by_line: dict[str, tuple[Floats, Floats]] = field(default_factory=dict)
    """Per source: lines in rising order and the position at each."""
    by_other: tuple[Floats, Floats, Floats] | None = None
    """The other of step and epoch in rising order, and the first and the last position at each."""
    spread: bool = False
    """No series holds both: epochs are spread evenly over the steps (or the reverse), the last on the last."""

    @property
    def label(self) -> str:
        return self.unit if self.unit != "line" else "line of the log (it numbers no steps)"

    def place(self, series: Series) -> Floats | None:
        """Shape (n,): where each value of the series lies, or None where nothing tells."""
        own = {"step": series.step, "epoch": series.epoch, "line": series.line.astype(np.float64)}[self.unit]
        if np.isfinite(own).all():
            return own
        other = series.epoch if self.unit == "step" else series.step
        return self._convert(other, series.source, series.line.astype(np.float64))

    def span(self, where: Location) -> tuple[float, float] | None:
        """First and last position of a finding, or None where it lies elsewhere (code, another file)."""
        last = where.step if where.end_step is None else where.end_step
        steps = np.array([np.nan, np.nan] if where.step is None or last is None else [where.step, last])
        if where.unit == self.unit and np.isfinite(steps).all():
            return float(steps[0]), float(steps[1])
        other = steps if where.unit in ("step", "epoch") and self.unit != "line" else np.full(2, np.nan)
        last_line = where.line if where.end_line is None else where.end_line
        lines = np.array([where.line or np.nan, last_line or np.nan], dtype=np.float64)
        found = self._convert(other, where.file or "", lines)
        return None if found is None else (float(found[0]), float(found[1]))

    def _convert(self, other: Floats, source: str, lines: Floats) -> Floats | None:
        """By the other unit where a series holds both, else by the line in the same file, else spread.

        An epoch is many steps: what is numbered by it lies where its line stands among theirs, and without such lines
        at the epoch's end, where a validation is run.
        """
        by_line = self._from_lines(source, lines)
        if self.by_other is None or not np.isfinite(other).all() or (by_line is not None and self.spread):
            return by_line
        keys, first, last = self.by_other
        end = np.interp(other, keys, last)
        if by_line is None:
            return np.asarray(end, dtype=np.float64)
        return np.asarray(np.clip(by_line, np.interp(other, keys, first), end), dtype=np.float64)

    def _from_lines(self, source: str, lines: Floats) -> Floats | None:
        if source not in self.by_line or not np.isfinite(lines).all():
            return None
        return np.asarray(np.interp(lines, *self.by_line[source]), dtype=np.float64)


def axis_of(run: Run) -> Axis:
    """The axis of a run: the unit of its main loss, else of its longest series."""
    main = run.loss or run.val_loss or max((s for s in run.series if len(s)), key=len, default=None)
    unit = main.unit if main is not None else "step"
    numbered = [s for s in run.series if len(s) and s.unit == unit]
    if unit == "line":
        return Axis(unit, {s.source: (_rising(s.line), _rising(s.line)) for s in numbered})
    by_line = {source: _table((s.line, s.position) for s in numbered if s.source == source)[:2]
               for source in {s.source for s in numbered}}
    both = [s for s in numbered if np.isfinite(s.step).all() and np.isfinite(s.epoch).all()]
    pairs = [(s.epoch, s.step) if unit == "step" else (s.step, s.epoch) for s in both]
    if pairs:
        return Axis(unit, by_line, _table(pairs))
    others = [s for s in run.series if len(s) and s.unit not in (unit, "line")]
    if not others:
        return Axis(unit, by_line)
    # what is told of epoch 0 of twelve is known at its end, which is no step 0
    start = -1.0 if unit == "step" and _counts_epochs_from_zero(others) else 0.0
    ends = (np.array([start, max(s.position.max() for s in others)]),
            np.array([0.0, max(s.position.max() for s in numbered)]))
    return Axis(unit, by_line, (*ends, ends[1]), spread=True)


def _counts_epochs_from_zero(series: Sequence[Series]) -> bool:
    """Whether whole epochs are numbered 0, 1, 2: fractions of epochs say themselves where they lie."""
    found = np.concatenate([s.position for s in series])
    return bool(found.min() == 0 and (found == np.floor(found)).all() and found.max() > 0)


def _rising(line: np.ndarray) -> Floats:
    return np.unique(line.astype(np.float64))


def _table(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[Floats, Floats, Floats]:
    """Keys in rising order without repeats, and the smallest and largest value that goes with each."""
    listed = list(pairs)
    keys = np.concatenate([k.astype(np.float64) for k, _ in listed])
    values = np.concatenate([v.astype(np.float64) for _, v in listed])
    unique, at = np.unique(keys, return_inverse=True)
    first, last = np.full(len(unique), np.inf), np.full(len(unique), -np.inf)
    np.minimum.at(first, at, values)
    np.maximum.at(last, at, values)
    return unique, first, last
