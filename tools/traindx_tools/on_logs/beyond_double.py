"""Finite numbers that are too large for a double: `float` gives inf for them, and a log that prints none has none.

A whole number of Python or a decimal has no bound; the largest double stands for it, and a remark says so.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers.text_log import lines_of
from traindx_tools.on_logs.run import Ints, Run, Series

LARGEST = sys.float_info.max
_INFINITE = re.compile(r"inf|∞", re.IGNORECASE)


def as_largest(run: Run, source: Source) -> Run:
    """What a source told, with the largest double for values that stand in it as digits and came out as infinite."""
    infinite = [np.unique(s.line[np.isinf(s.values)]) for s in run.series]
    if not any(map(len, infinite)):
        return run
    with suppress(OSError):
        if not is_binary(source.head):
            written = _written_in_digits(source, np.unique(np.concatenate(infinite)))
            series = tuple(_bounded(s, written) for s in run.series)
            return replace(run, series=series, artifacts=_with_remark(run, series))
    return run


def _written_in_digits(source: Source, lines: Ints) -> Ints:
    """The lines without a word for infinity; all of them where the whole text has none. A store has no text: none."""
    asked, found, any_word, number = set(lines.tolist()), [], False, 0
    for number, text in lines_of(source):
        word = _INFINITE.search(text) is not None
        any_word |= word
        if number in asked and not word:
            found.append(number)
    return np.array(found, np.int64) if any_word or not number else lines


def _bounded(series: Series, lines: Ints) -> Series:
    beyond = np.isinf(series.values) & np.isin(series.line, lines)
    return replace(series, values=np.where(beyond, np.copysign(LARGEST, series.values), series.values)
                   ) if beyond.any() else series


def _with_remark(run: Run, series: Sequence[Series]) -> tuple[Artifact, ...]:
    count = sum(int((np.isinf(old.values) & ~np.isinf(new.values)).sum()) for old, new in zip(
        run.series, series, strict=True))
    if not count or not run.artifacts:
        return run.artifacts
    what = "a finite number is" if count == 1 else f"{count:,} finite numbers are"
    first = run.artifacts[0]
    note = f"{what} too large for a double and read as the largest one, {LARGEST:.4g}"
    return (replace(first, note="; ".join(filter(None, (first.note, note)))), *run.artifacts[1:])
