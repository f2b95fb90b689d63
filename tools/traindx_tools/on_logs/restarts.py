"""Where one log ends and the next run's begins in the same file: a restart, a second try, a fold, a variant.

A run that starts over counts from its start again. That alone is not enough: a counter of batches starts over with each
epoch, stages of one training count anew, and a resumed run repeats a few steps. So a counter of epochs has to fall back
to the first one, and a counter of steps needs a witness besides: the lines from the beginning of the file come again
(the command, the arguments, a banner), or the loss is back where it was at first. A resume goes on with the same run.
Another cell of a notebook is a witness as well, unless the loss goes on there where it ended.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from traindx_tools.on_logs.curves.shapes import noise
from traindx_tools.on_logs.run import Floats, Ints, Run, Series

FEWEST = 3
"""Different places that a run reached before it started over: ranks that print in turn differ by one or two."""
MANY_RUNS = 200
"""Runs in one file from which on nearly every fall of the counter has to begin one, and none may go on with what others
have learned: else it is a counter that starts over."""
MOST_RUNS = 100_000
"""Runs in one file; more are such a counter in any case."""
NEARLY = 0.9
"""Share of the falls of a counter that is nearly all of them."""
MOST_GAP = 2_000
"""Lines between two records that are looked at."""
MOST_DISTANCES = 200
"""Records at the beginning of a run from which the distance of its steps, and the scatter of its loss, are taken."""
MOST_HEAD = 200
"""Lines before the first record that are compared."""
REPEATED = 0.5
"""Share of the first lines that have to come again."""
MOVED = 0.1
"""Share of its first value by which a loss moved, where its course tells a start from an end."""
ERRORS = 4.0
"""Standard deviations from record to record that it has fallen at least before it can be back at its start: by three of
them one value stands out once in some hundred epochs."""
RETURNED = 0.6
"""Share of the way from its end to its start that the loss has gone back."""
_NUMBER = re.compile(r"[-+]?\d[\d.,:]*(?:[eE][-+]?\d+)?")
STARTS = re.compile(r"Namespace\(|^\W{0,3}(?:\S*[$>#%] +|\++ +)?(?:\w+=\S+ +)*(?:\S*/)?"
                     r"(?:python[\d.]*|torchrun|accelerate|deepspeed|srun)\s.*(?:\.py|-m\s)")
"""A line that a run writes once, when it starts."""
_STAGE = re.compile(r"\b(?:stage|phase|task|curriculum|warm.?restart|cycle|fine-?tun)", re.IGNORECASE)

_ERROR = "Traceback (most recent"
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_NO_GAP = (sys.maxsize, sys.maxsize)
MOST_FORMS, LONGEST = 20_000, 2_000
"""Forms of lines that are remembered, and bytes of a line up to which they are."""

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


@dataclass(frozen=True, eq=False)
class Course:
    """What is asked of a file at each record that lies before the one above it, found once: there may be thousands."""

    part: Run
    track: Series
    lines: Lines
    head: Head
    sections: Sequence[int] = ()
    """Lines at which what another cell of a notebook printed begins."""
    distances: dict[tuple[int, int], float] = field(default_factory=dict)
    reaches: dict[tuple[int, bool], int] = field(default_factory=dict)

    @cached_property
    def epoch(self) -> Floats:
        """Epoch of each record; 0 where it is not known."""
        return _places(self.track)[0]

    @cached_property
    def step(self) -> Floats:
        """Step of each record; 0 where it is not known."""
        return _places(self.track)[1]

    @cached_property
    def counts_epochs(self) -> bool:
        """Whether every record tells its epoch."""
        return self.track.unit == "epoch" or bool(np.isfinite(self.track.epoch).all())

    @cached_property
    def numbers(self) -> list[int]:
        """The number of each line."""
        return [n for n, _ in self.lines]

    @cached_property
    def resumed(self) -> list[int]:
        """The lines, in order, that say that an earlier run is resumed, which the first run did not say."""
        said = {form_of(t) for m, t in self.lines[:MOST_HEAD] if m < self.head.first}
        return sorted(n.line for n in self.part.notes if n.kind == "resume" and form_of(n.text) not in said)

    @cached_property
    def losses(self) -> tuple[Ints, Floats]:
        """Line and value of each finite loss."""
        loss = self.part.loss
        if loss is None:
            return np.zeros(0, np.int64), np.zeros(0)
        return loss.line[loss.finite], loss.values[loss.finite]

    def first(self, begin: int) -> int:
        """The first record of the run that begins at a line."""
        return int(np.searchsorted(self.track.line, begin))

    def section(self, above: int, here: int) -> int | None:
        """The last line after `above` and up to `here` at which another cell begins to print; None without one."""
        at = bisect_right(self.sections, here)
        return self.sections[at - 1] if at and self.sections[at - 1] > above else None

    def between(self, above: int, here: int) -> Lines:
        """The lines between two lines."""
        low = bisect_right(self.numbers, above)
        return self.lines[low: min(low + MOST_GAP, bisect_left(self.numbers, here))]

    def distance(self, start: int, i: int) -> float:
        """The usual distance between the steps of records `start` to `i`."""
        i = min(i, start + MOST_DISTANCES)
        if (start, i) not in self.distances:
            steps = self.step[start:i]
            self.distances[start, i] = float(np.median(np.abs(np.diff(steps)))) if len(steps) > 1 else 0.0
        return self.distances[start, i]

    def got_far(self, start: int, i: int, *, epochs: bool) -> bool:
        """Whether records `start` up to, not including, `i` stand at `FEWEST` different places."""
        if (start, epochs) not in self.reaches:
            self.reaches[start, epochs] = _reach(self.epoch if epochs else self.step, start)
        return self.reaches[start, epochs] < i


def _reach(places: Floats, start: int) -> int:
    """The first record, counted from `start` on, with which `FEWEST` different places were seen."""
    seen: set[float] = set()
    for i in range(start, len(places)):
        seen.add(float(places[i]))
        if len(seen) >= FEWEST:
            return i
    return len(places)


def segments(part: Run, read: Callable[[], Iterable[tuple[int, str]]],
             sections: Sequence[int] = ()) -> tuple[Segment, ...]:
    """The runs that a file holds, in order; at least one. `read` gives its numbered lines, where they are needed.

    `sections`: the lines, in order, at which what another cell of a notebook printed begins.
    """
    track = _track(part)
    falls = _falls(track) if track is not None else []
    if track is None:
        return _between(_uncounted(part, sections), ())
    noted = [n.line for n in part.notes if n.kind == "resume" and n.line > track.line[0]]
    if not part.errors and not falls:  # a try without records ended in an error
        return (Segment(1, None, tuple(sorted(noted))),)
    lines, counts = _asked_for(read(), track, falls)
    head = _head(lines, counts, int(track.line[0]), len(falls))
    course = Course(part, track, lines, head, sections)
    begins, resumes = [1], []
    for count, i in enumerate(falls):
        at = _boundary(course, i, begins[-1])
        if at is not None:
            begins.append(at)
        elif not _at_start(course, begins[-1], i):
            resumes.append(int(track.line[i]))
        many = len(begins) > MANY_RUNS
        if many and (len(begins) < NEARLY * count or len(begins) > MOST_RUNS):
            return (Segment(1, None),)
    if len(begins) > MANY_RUNS and not course.counts_epochs and _learns_over(course, begins):
        return (Segment(1, None),)
    begins = sorted({*begins, *_without_records(part, lines, track, head, begins)})
    return _between(begins, sorted({*resumes, *noted}))


def _between(begins: Sequence[int], resumes: Sequence[int]) -> tuple[Segment, ...]:
    """The runs that begin at these lines, each with the resumes within it."""
    ends = [*(b - 1 for b in begins[1:]), None]
    return tuple(Segment(b, e, tuple(resumes[bisect_right(resumes, b): bisect_right(resumes, e) if e else None]))
                 for b, e in zip(begins, ends, strict=True))


def _uncounted(part: Run, sections: Sequence[int]) -> list[int]:
    """Where runs begin of which no record tells its step or epoch: at cells in which the loss does not go on."""
    loss, begins = part.loss, [1]
    if loss is None or loss.unit != "line" or len(sections) < 2:
        return begins
    at, values = loss.line[loss.finite], loss.values[loss.finite]
    for line, after in zip(sections[1:], [*sections[2:], sys.maxsize], strict=True):
        low, here, end = np.searchsorted(at, [begins[-1], line, after])
        if min(here - low, end - here) >= FEWEST and not _continues(values[low:here], float(values[here])):
            begins.append(line)
    return begins if len(begins) <= MANY_RUNS else [1]


def _continues(before: Floats, value: float) -> bool:
    """Whether a loss goes on where it ended: it moved before, and is nearer to its end than to its start."""
    if len(before) < FEWEST:
        return False
    first, last = float(before[0]), float(np.median(before[-FEWEST:]))
    way = abs(first - last)
    return way > MOVED * abs(first) and abs(value - last) < (1 - RETURNED) * way


def _track(part: Run) -> Series | None:
    """The series that counts the run: the longest one of training that knows its epoch or step, of the first rank."""
    counted = [s for s in part.series if len(s) >= 2 and (np.isfinite(s.epoch).all() or np.isfinite(s.step).all())]
    lowest = min((c.rank or 0 for c in counted), default=0)
    first = [s for s in counted if s.rank == lowest or s.rank is None]
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


def _asked_for(lines: Iterable[tuple[int, str]], track: Series, falls: Sequence[int]) -> tuple[Lines, Counter[str]]:
    """The first lines and the last, those before a fall, commands and errors; how often each form of the first comes.

    The others, nearly all, are passed over: lines that differ in digits only are looked at once.
    """
    kept: list[tuple[int, str]] = []
    counts: Counter[str] = Counter()
    wanted: dict[str, bool] = {}
    known: dict[bytes, str] = {}
    first, last = int(track.line[0]), (0, "")
    gaps = iter([(int(track.line[i - 1]), int(track.line[i])) for i in falls])
    (above, here), left = next(gaps, _NO_GAP), MOST_GAP
    for at, last in enumerate(lines):
        number, text = last
        form = _known_form(text, known)
        if at < MOST_HEAD and number < first:
            wanted[form] = wanted.get(form, False) or STARTS.search(text) is not None
        while number >= here:
            (above, here), left = next(gaps, _NO_GAP), MOST_GAP
        left -= above < number
        if form in wanted:
            counts[form] += 1
        if at < MOST_HEAD or (above < number and left >= 0) or wanted.get(form) or text.startswith(_ERROR):
            kept.append(last)
    if kept and kept[-1] != last:
        kept.append(last)
    return kept, counts


def _known_form(text: str, known: dict[bytes, str]) -> str:
    mask = text.encode("utf-8", "surrogatepass").translate(_DIGITS)
    form = known.get(mask)
    if form is None:
        form = form_of(text)
        if len(known) < MOST_FORMS and len(mask) <= LONGEST:
            known[mask] = form
    return form


def _head(lines: Lines, counts: Counter[str], first: int, falls: int) -> Head:
    above = [t for n, t in lines[:MOST_HEAD] if n < first]
    banner = next((form_of(t) for t in above if STARTS.search(t)), None)
    tries = [i for i, t in enumerate(above) if form_of(t) == banner]
    forms = [form_of(t) for t in above[tries[-1] if tries else 0:]]  # those of a try before it may be of its error
    often = 4 * (falls + 2 + len(tries))
    return Head(frozenset(f for f in forms if sum(c.isalpha() for c in f) >= 3 and counts[f] <= often), banner, first)


def form_of(text: str) -> str:
    """A line with its numbers left open."""
    return _NUMBER.sub("0", text.strip())[:300]


def _boundary(course: Course, i: int, begin: int) -> int | None:
    """The line at which a new run begins before record `i`; None where the run goes on."""
    track, forms = course.track, course.head.forms
    above, here = int(track.line[i - 1]), int(track.line[i])
    if not _at_start(course, begin, i) or _goes_on(course, above, here):
        return None
    start = course.first(begin)
    gap = course.between(above, here)
    again = [n for n, t in gap if form_of(t) in forms]
    repeats = bool(forms) and len({form_of(t) for _, t in gap} & forms) >= REPEATED * len(forms)
    if not repeats and any(_STAGE.search(t) for _, t in gap):
        return None
    fell = course.counts_epochs and bool(track.epoch[i] < track.epoch[i - 1])
    reached = course.got_far(start, i, epochs=fell)
    anew = reached and (fell or (not course.counts_epochs and _returned(course, start, i)))
    cell = course.section(above, here)
    if repeats or anew or (cell is not None and (fell or not _carries_on(course, start, i))):
        return again[0] if again else cell or here
    return None


def _carries_on(course: Course, start: int, i: int) -> bool:
    """Whether the loss at record `i` goes on where the run that began at record `start` ended."""
    at, values = course.losses
    low, here = np.searchsorted(at, [course.track.line[start], course.track.line[i]])
    return bool(here < len(values)) and _continues(values[low:here], float(values[here]))


def _at_start(course: Course, begin: int, i: int) -> bool:
    """Whether record `i` is where the run before it began, or within its first interval."""
    start = course.first(begin)
    if course.epoch[i] != course.epoch[start]:
        return bool(course.epoch[i] < course.epoch[start])
    return bool(course.step[i] <= course.step[start] + course.distance(start, i))


def _goes_on(course: Course, above: int, here: int) -> bool:
    """Whether a line says that an earlier run is resumed, which the first run did not say when it began."""
    after = bisect_right(course.resumed, above)
    return after < len(course.resumed) and course.resumed[after] <= here + 1


def _returned(course: Course, start: int, i: int) -> bool:
    """Whether the loss is back near where it was when the run began."""
    at, values = course.losses
    low, here, end = np.searchsorted(at, [course.track.line[start], course.track.line[i], course.track.line[-1] + 1])
    if here - low < FEWEST or end <= here:
        return False
    first, last = float(values[low]), float(np.median(values[here - FEWEST: here]))
    fallen = first - last
    clear = fallen > max(MOVED * abs(first), ERRORS * noise(values[low:here][:MOST_DISTANCES]))
    return clear and float(values[here]) - last >= RETURNED * fallen


def _learns_over(course: Course, begins: Sequence[int]) -> bool:
    """Whether the later ones of many runs begin lower than the first ones: as far below as a run falls by a part."""
    at, values = course.losses
    first = np.searchsorted(at, begins)
    last = np.append(first[1:], len(values)) - 1
    told = (first < len(values)) & (last > first)
    first, last = first[told], last[told]
    edge = len(first) // 10
    if not edge:
        return True
    fallen = float(np.median(values[first] - values[last]))
    return float(np.median(values[first[:edge]]) - np.median(values[first[-edge:]])) > (1 - RETURNED) * fallen


def _without_records(part: Run, lines: Lines, track: Series, head: Head, begins: Sequence[int]) -> Iterator[int]:
    """Where a try begins that ended in an error before its first record, and where the next one does.

    The first command or arguments of the file come again. Ranks write them once each, without an error between.
    """
    seen = [n for n, t in lines if form_of(t) == head.banner] if head.banner is not None else []
    broken = sorted({*(e.line for e in part.errors), *(n for n, t in lines if t.startswith(_ERROR))})
    failed = False
    for at, line in enumerate(seen):
        until = seen[at + 1] if at + 1 < len(seen) else lines[-1][0] + 1
        first, last = np.searchsorted(track.line, [line, until])
        before, failed = failed, first == last and _any_of(broken, line, until)
        if at and (before or failed) and not _any_of(begins, seen[at - 1] + 1, line + 1):
            yield line


def _any_of(ordered: Sequence[int], start: int, end: int) -> bool:
    """Whether one of the numbers, which are in order, lies from `start` up to, not including, `end`."""
    return bisect_left(ordered, start) < bisect_left(ordered, end)
