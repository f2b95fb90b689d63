"""What a log announces in lines of its own and prints in no record: the loss scale after each skipped step.

And what it only seems to print: a setting of one of its terms ("initial_loss_scale ..... 4294967296") is no metric.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.on_logs.readers.numbers import value
from traindx_tools.on_logs.run import Floats, Ints, Note, Run, Series

REDUCED = "loss scale after a skipped step"
"""How the series is named: it has no value for a step that was not skipped, so it never shows that a scale grew."""
_REDUCING = re.compile(r"(?:reduc\w+.{0,24}?|setting loss scale )\bto\b:?\s*([0-9][0-9.eE+-]*)", re.IGNORECASE)
FEWEST = 3
"""Announcements that make a series."""


def reduced_scale(note: Note) -> float | None:
    """The loss scale that a line about a skipped step names as the next one; None for another line."""
    found = _REDUCING.search(note.text) if note.kind == "step_skipped" else None
    scale = value(found[1].rstrip(".-+")) if found is not None else None
    return scale if scale is not None and 0 < scale < np.inf else None


def with_announced(run: Run) -> Run:
    """The run with the announced loss scales of each source as a series, and without settings taken for terms."""
    kept = tuple(s for s in run.series if not _is_setting(s, run))
    if any(s.name == "loss_scale" and len(s) > 1 for s in kept):
        return replace(run, series=kept)
    return replace(run, series=(*kept, *_scales(run.notes, kept)))


def _is_setting(s: Series, run: Run) -> bool:
    """Whether a term of the loss stands once in the log, and there as a setting of the same name and value."""
    if len(s) != 1 or not s.name.startswith("loss/"):
        return False
    stated = [v for k, v in run.config.items() if k.rpartition(".")[2] == s.original]
    return any(isinstance(v, (int, float)) and float(s.values[0]) == v for v in stated)


def _scales(notes: Sequence[Note], series: Sequence[Series]) -> Iterator[Series]:
    for source in dict.fromkeys(n.source for n in notes):
        told = [(n.line, scale) for n in notes if n.source == source and n.rank in (None, 0)
                and (scale := reduced_scale(n)) is not None]
        if len(told) >= FEWEST:
            lines = np.array([line for line, _ in told], np.int64)
            nothing = np.full(len(told), np.nan)
            yield Series("loss_scale", REDUCED, "train", source, np.array([v for _, v in told], np.float64),
                         _steps_before(lines, source, series), nothing, nothing, lines)


def _steps_before(lines: Ints, source: str, series: Sequence[Series]) -> Floats:
    """The last step that the log names before each line; NaN where it names none before one of them."""
    beside = max((s for s in series if s.source == source and s.unit == "step"), key=len, default=None)
    nothing = np.full(len(lines), np.nan)
    if beside is None or (np.diff(beside.line) < 0).any() or lines[0] <= beside.line[0]:
        return nothing
    return np.asarray(beside.step[np.searchsorted(beside.line, lines) - 1])
