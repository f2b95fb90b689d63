"""Where one log ends and the next run's begins in the same file: a restart, a second try, a fold, a variant.

A run that starts over counts from its start again. That alone is not enough: a counter of batches starts over with each
epoch, stages of one training count anew, and a resumed run repeats a few steps. So a counter of epochs has to fall back
to the first one, and a counter of steps needs a witness besides: the lines from the beginning of the file come again
(the command, the arguments, a banner), or the loss is back where it was at first. A resume goes on with the same run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.run import Floats, Note, Run, Series

FEWEST = 3
"""Different places that a run reached before it started over: ranks that print in turn differ by one or two."""
MOST_RUNS = 200
"""Runs in one file; more are a counter that starts over."""
MOST_HEAD = 200
"""Lines before the first record that are compared."""
REPEATED = 0.5
"""Share of the first lines that have to come again."""
RETURNED = 0.6
"""Share of the way from its end to its start that the loss has gone back."""
_NUMBER = re.compile(r"[-+]?\d[\d.,:]*(?:[eE][-+]?\d+)?")
_STARTS = re.compile(r"Namespace\(|^\W{0,3}(?:\S*[$>#%] +|\++ +)?(?:\w+=\S+ +)*(?:\S*/)?"
                     r"(?:python[\d.]*|torchrun|accelerate|deepspeed|srun)\s.*(?:\.py|-m\s)")
"""A line that a run writes once, when it starts."""
_STAGE = re.compile(r"\b(?:stage|phase|task|curriculum|warm.?restart|cycle|fine-?tun)", re.IGNORECASE)

Lines = Sequence[tuple[int, str]]


@dataclass(frozen=True)
class Segment:
    """The lines of one run in a file: from `start` to `end`, both inclusive and 1-based; `end` None: to the last."""

    start: int
    end: int | None
    resumes: tuple[int, ...] = ()
    """Lines at which it went on after a resume."""


@dataclass(frozen=True)
class Head:
    """The forms of the lines before the first record that are not written again and again."""

    forms: frozenset[str]
    banner: str | None
    """The form of the first command or argument dump in the file."""
    first: int
    """Line of the first record."""


def segments(part: Run, read: Callable[[], Iterable[tuple[int, str]]]) -> tuple[Segment, ...]:
    """The runs that a file holds, in order; at least one. `read` gives its numbered lines, where they are needed."""
    track = _track(part)
    falls = _falls(track) if track is not None else []
    starts = track is not None and bool(part.notes or part.errors or falls)
    if track is None or not starts:
        return (Segment(1, None),)
    lines = list(read())
    head = _head(lines, int(track.line[0]), len(falls))
    begins, resumes = [1], []
    for i in falls:
        at = _boundary(part, track, i, begins[-1], lines, head)
        if at is not None:
            begins.append(at)
        elif not _at_start(track, begins[-1], i):
            resumes.append(int(track.line[i]))
    begins = sorted({*begins, *_without_records(part, lines, track, head, begins)})
    if len(begins) > MOST_RUNS:
        return (Segment(1, None),)
    noted = [n.line for n in part.notes if n.kind == "resume" and n.line > track.line[0]]
    ends = [*(b - 1 for b in begins[1:]), None]
    return tuple(Segment(b, e, tuple(sorted({r for r in (*resumes, *noted) if b < r <= (e or r)})))
                 for b, e in zip(begins, ends, strict=True))


def _track(part: Run) -> Series | None:
    """The series that counts the run: the longest one of training that knows its epoch or step, of the first rank."""
    counted = [s for s in part.series if len(s) >= 2 and (np.isfinite(s.epoch).all() or np.isfinite(s.step).all())]
    first = [s for s in counted if s.rank == min((c.rank or 0 for c in counted), default=0) or s.rank is None]
    return max(first, key=lambda s: (s.group == "train", len(s)), default=None)


def _places(track: Series) -> tuple[Floats, Floats]:
    """Epoch and step of each record; what is not known does not count."""
    known = [np.where(np.isfinite(x), x, 0.0) for x in (track.epoch, track.step)]
    return known[0], known[1]


def _falls(track: Series) -> list[int]:
    """The records that lie before the one above them."""
    epoch, step = _places(track)
    less = (np.diff(epoch) < 0) | ((np.diff(epoch) == 0) & (np.diff(step) < 0))
    return [int(i) + 1 for i in np.flatnonzero(less)]


def _head(lines: Lines, first: int, falls: int) -> Head:
    counts = Counter(form_of(t) for _, t in lines)
    above = [t for n, t in lines[:MOST_HEAD] if n < first]
    banner = next((form_of(t) for t in above if _STARTS.search(t)), None)
    tries = [i for i, t in enumerate(above) if form_of(t) == banner]
    forms = [form_of(t) for t in above[tries[-1] if tries else 0:]]  # those of a try before it may be of its error
    often = 4 * (falls + 2 + len(tries))
    return Head(frozenset(f for f in forms if sum(c.isalpha() for c in f) >= 3 and counts[f] <= often), banner, first)


def form_of(text: str) -> str:
    """A line with its numbers left open."""
    return _NUMBER.sub("0", text.strip())[:300]


def _boundary(part: Run, track: Series, i: int, begin: int, lines: Lines, head: Head) -> int | None:
    """The line at which a new run begins before record `i`; None where the run goes on."""
    above, here = int(track.line[i - 1]), int(track.line[i])
    start = _first(track, begin)
    gap = [(n, t) for n, t in _between(lines, above, here)]
    again = [n for n, t in gap if form_of(t) in head.forms]
    repeats = bool(head.forms) and len({form_of(t) for _, t in gap} & head.forms) >= REPEATED * len(head.forms)
    if not _at_start(track, begin, i) or _goes_on(part.notes, above, here, lines, head):
        return None
    if not repeats and any(_STAGE.search(t) for _, t in gap):
        return None
    epochs = track.unit == "epoch" or np.isfinite(track.epoch).all()
    fell = epochs and track.epoch[i] < track.epoch[i - 1]
    reached = len(np.unique(_places(track)[0 if fell else 1][start:i]))
    anew = reached >= FEWEST and (fell or (not epochs and _returned(part, track, start, i)))
    if repeats or anew:
        return again[0] if again else here
    return None


def _first(track: Series, begin: int) -> int:
    """The first record of the run that begins at a line."""
    return int(np.searchsorted(track.line, begin))


def _at_start(track: Series, begin: int, i: int) -> bool:
    """Whether record `i` is where the run before it began, or within its first interval."""
    start = _first(track, begin)
    epoch, step = _places(track)
    if epoch[i] != epoch[start]:
        return bool(epoch[i] < epoch[start])
    interval = float(np.median(np.abs(np.diff(step[start:i])))) if i - start > 1 else 0.0
    return bool(step[i] <= step[start] + interval)


def _between(lines: Lines, above: int, here: int) -> Lines:
    low = np.searchsorted([n for n, _ in lines], above, side="right") if lines else 0
    return [p for p in lines[int(low): int(low) + 2_000] if p[0] < here]


def _goes_on(notes: Sequence[Note], above: int, here: int, lines: Lines, head: Head) -> bool:
    """Whether a line says that an earlier run is resumed, which the first run did not say when it began."""
    return any(n.kind == "resume" and above < n.line <= here + 1 and form_of(n.text) not in
               {form_of(t) for m, t in lines[:MOST_HEAD] if m < head.first} for n in notes)


def _returned(part: Run, track: Series, start: int, i: int) -> bool:
    """Whether the loss is back near where it was when the run began."""
    loss = part.loss
    if loss is None:
        return False
    begin, here, end = int(track.line[start]), int(track.line[i]), int(track.line[-1])
    before = loss.values[(loss.line >= begin) & (loss.line < here) & loss.finite]
    after = loss.values[(loss.line >= here) & (loss.line <= end) & loss.finite]
    if len(before) < FEWEST or not len(after):
        return False
    first, last = float(before[0]), float(np.median(before[-FEWEST:]))
    fallen = first - last
    return fallen > 0.1 * abs(first) and float(after[0]) - last >= RETURNED * fallen


def _without_records(part: Run, lines: Lines, track: Series, head: Head, begins: Sequence[int]) -> Iterator[int]:
    """Where a try begins that ended in an error before its first record, and where the next one does.

    The first command or arguments of the file come again. Ranks write them once each, without an error between.
    """
    seen = [n for n, t in lines if form_of(t) == head.banner] if head.banner is not None else []
    broken = sorted({*(e.line for e in part.errors), *(n for n, t in lines if t.startswith("Traceback (most recent"))})
    failed = False
    for at, line in enumerate(seen):
        until = seen[at + 1] if at + 1 < len(seen) else lines[-1][0] + 1
        records = ((track.line >= line) & (track.line < until)).any()
        before, failed = failed, not records and any(line <= n < until for n in broken)
        if at and (before or failed) and not any(seen[at - 1] < b <= line for b in begins):
            yield line
