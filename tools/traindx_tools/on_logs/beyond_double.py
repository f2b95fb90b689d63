"""Numbers that are too large for a double: `float` gives inf for them.

With an exponent they are infinity, as whoever has no word for it writes it: 1e999 in JSON, 1e309 in Python's own
sources. Hundreds of digits are a whole number of Python or a decimal, which has no bound: finite, and nothing that a
float holds. Such a value is left out, and a remark says so.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace

import numpy as np

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers.text_log import lines_of
from traindx_tools.on_logs.run import Ints, Run, Series

_DIGITS = re.compile(r"(?<![\w.])[-+]?\d{309,}(?:\.\d*)?(?![\deE])")
"""A number of more digits than the largest double has, without an exponent."""
_INFINITE = re.compile(r"inf|∞|(?<![\w.])[-+]?\d+(?:\.\d*)?e\+?(?:30[89]|3[1-9]\d|[4-9]\d\d|[1-9]\d{3,})",
                       re.IGNORECASE)
"""A word for infinity, or a number with an exponent that may overflow."""
_FEWEST = 309
"""Digits of such a number."""


def without_unheld(run: Run, source: Source) -> Run:
    """What a source told, without values that stand in it as digits and that no float holds."""
    infinite = [np.unique(s.line[np.isinf(s.values)]) for s in run.series]
    if not any(map(len, infinite)):
        return run
    with suppress(OSError):
        if not is_binary(source.head):
            written = _written_in_digits(source, np.unique(np.concatenate(infinite)))
            told = [_held(s, written) for s in run.series]
            left = sum(len(s) for s in run.series) - sum(map(len, told))
            series = tuple(s for s in told if len(s))
            return replace(run, series=series, artifacts=_with_remark(run, left, written)) if left else run
    return run


def _written_in_digits(source: Source, lines: Ints) -> Ints:
    """The lines with such digits and nothing else that gives infinity; all of them where they are records of a text
    that has no infinity in it. A store has no text: none."""
    asked, found, any_digits, infinite = set(lines.tolist()), [], False, False
    for number, text in lines_of(source):
        digits = len(text) >= _FEWEST and _DIGITS.search(text) is not None
        word = _INFINITE.search(text) is not None
        infinite, any_digits = infinite or word, any_digits or digits
        if number in asked and digits and not word:
            found.append(number)
    return lines if any_digits and not found and not infinite else np.array(found, np.int64)


def _held(series: Series, lines: Ints) -> Series:
    stays = ~(np.isinf(series.values) & np.isin(series.line, lines))
    return series if stays.all() else replace(
        series, values=series.values[stays], step=series.step[stays], epoch=series.epoch[stays],
        time=series.time[stays], line=series.line[stays])


def _with_remark(run: Run, count: int, lines: Ints) -> tuple[Artifact, ...]:
    if not run.artifacts:
        return run.artifacts
    what = "1 value is no number" if count == 1 else f"{count:,} values are no numbers"
    first = run.artifacts[0]
    note = f"{what} that a float holds (more than {_FEWEST - 1} digits): left out, the first in line {lines[0]}"
    return (replace(first, note="; ".join(filter(None, (first.note, note)))), *run.artifacts[1:])
