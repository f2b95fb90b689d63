"""One series has one counter, and what is told twice is read once.

A log may tell a metric under one name by several counters: its batches and its optimizer steps, its steps and the
samples seen. Their numbers are of different scale: put into one series they go to and fro. Where they go on together
(the surest word for steps in one line, another in the next) they are one series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers.growing import Growing
from traindx_tools.on_logs.readers.series_names import Key
from traindx_tools.on_logs.run import Floats, Ints, Series, finest

MOST_COUNTERS = 8
"""Counters that are told apart in one log."""
FALLS, FEWEST_FALLS = 0.1, 3
"""Share of the changes from one counter to the other at which the number falls, and how many it has to be: one that
is resumed or begins anew falls now and then, two of different scale at every other change."""
ALIKE, MOSTLY = 1e-3, 0.9
"""Distance, as a share, of two prints of one value with unlike many digits; share of the repeats that have to be so."""
MOST_TIMES = 4
"""Values at one step from which on they are values of their own, of parts of a batch."""
MOST_TOLD_AGAIN = 100
"""Single records that go back, of one log; more go back for another reason."""
FEWEST_TWINS = 5
BY = ", "
"""Between what counts and who writes it."""
Mask = NDArray[np.bool_]
Columns = tuple[Growing, Growing]


def joined(values: dict[Key, Columns], step: Floats) -> dict[Key, Columns]:
    """The records of each series, by counter where these are of different scale. `step`: of each record."""
    together: dict[Key, list[Key]] = {}
    for key in values:
        together.setdefault(replace(key, counter=""), []).append(key)
    found: dict[Key, Columns] = {}
    for bare, keys in together.items():
        if len(keys) == 1:
            found[bare] = values[keys[0]]
            continue
        main = max((k for k in keys if k.counter), key=lambda k: len(values[k][0]))
        apart = [k for k in keys if k.counter and k is not main and (
            _apart(step, values[main][0], values[k][0])
            or (writer(k.counter) != writer(main.counter) and _differ(step, values[main], values[k])))]
        found[bare] = _merged([values[k] for k in keys if k not in apart])
        found.update((k, values[k]) for k in apart)
    return found


def _apart(step: Floats, one: Growing, other: Growing) -> bool:
    """Whether the numbers of two counters belong to two scales."""
    mine, theirs = step[one.told()], step[other.told()]
    known = [np.isfinite(s) for s in (mine, theirs)]
    if all(k.all() or not k.any() for k in known) and known[0].any() != known[1].any():
        return min(map(len, known)) >= FEWEST_FALLS
    order = np.argsort(np.concatenate([one.told(), other.told()]), kind="stable")
    counted = np.concatenate([mine, theirs])[order]
    changes = np.diff(order < len(mine))
    falls = int(np.count_nonzero((np.diff(counted) < 0) & changes))
    return falls >= FEWEST_FALLS and falls > FALLS * int(np.count_nonzero(changes))


def writer(counter: str) -> str:
    """Who writes the lines of a counter: the second half of "step, teacher"; "" where nothing says so."""
    return counter.partition(BY)[2]


def _differ(step: Floats, one: Columns, other: Columns) -> bool:
    """Whether two writers tell other values at the same steps: each has a series of its own, as a teacher and its
    student have. One that tells the same again, or goes on where the other ended, has none."""
    mine, theirs = step[one[0].told()], step[other[0].told()]
    _, at, of = np.intersect1d(mine, theirs, return_indices=True)
    known = np.isfinite(mine[at])
    shared = int(np.count_nonzero(known))
    if shared < max(FEWEST_TWINS, 0.5 * min(len(mine), len(theirs))):
        return False
    same = _alike(one[1].told()[at[known]], other[1].told()[of[known]])
    return int(np.count_nonzero(same)) < 0.5 * shared


def _merged(parts: Sequence[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    records, numbers = (np.concatenate([p[i].told() for p in parts]) for i in (0, 1))
    order = np.argsort(records, kind="stable")
    return _columns(records[order], numbers[order])


def _columns(records: Ints, numbers: Floats) -> Columns:
    index, kept = Growing("q"), Growing("d")
    index.extend(records)
    kept.extend(numbers)
    return index, kept


def told_once(columns: Columns, step: Floats, epoch: Floats) -> Columns:
    """Without values that are written again at the step that they were written at: by a second logger."""
    records, numbers = columns[0].told(), columns[1].told()
    at, within = step[records], epoch[records]
    again = (at[1:] == at[:-1]) & np.isfinite(at[1:]) & ((within[1:] == within[:-1]) | np.isnan(within[1:]))
    if np.count_nonzero(again) < FEWEST_FALLS or _longest(again) >= MOST_TIMES - 1:
        return columns
    same = again & _alike(numbers[1:], numbers[:-1])
    if np.count_nonzero(same) < MOSTLY * np.count_nonzero(again):
        return columns
    stays = np.r_[True, ~same]
    return _columns(records[stays], numbers[stays])


def without_told_again(values: dict[Key, Columns], step: Floats, epoch: Floats) -> dict[Key, Columns]:
    """Without single records that go back to a step that was told before and repeat all that was told there: "Early
    stopping, best iteration is: [7] ...". Of a run that begins anew, or is resumed, more than one record goes back."""
    by_epoch = np.where(np.isnan(step), epoch, np.nan)
    gone = [r for place in (step, by_epoch) for r in _going_back(place).tolist() if _repeats(values, place, r)]
    if not gone:
        return values
    return {key: _columns(index.told()[stays], numbers.told()[stays]) for key, (index, numbers) in values.items()
            if (stays := ~np.isin(index.told(), gone)).any()}


def _going_back(step: Floats) -> Ints:
    """Single records that stand before the furthest one so far, or at it where they are the last; none of many."""
    at = np.flatnonzero(np.isfinite(step))
    if len(at) < FEWEST_TWINS:
        return at[:0]
    furthest = np.maximum.accumulate(step[at])
    back = np.r_[False, step[at][1:] < furthest[:-1]]
    stays = np.r_[False, step[at][1:] == furthest[:-1]]
    if np.count_nonzero(stays) == 1 and stays[-1]:
        back[-1] = True
    on = ~(back | stays)
    alone = back & np.r_[True, on[:-1]] & np.r_[on[1:], True]
    return at[alone] if np.count_nonzero(alone) <= MOST_TOLD_AGAIN else at[:0]


def _repeats(values: dict[Key, Columns], step: Floats, record: int) -> bool:
    """Whether each value of a record is the last one that its series had at the same step before."""
    found = False
    for index, numbers in values.values():
        records = index.told()
        i = int(np.searchsorted(records, record))
        if i == len(records) or records[i] != record:
            continue
        before = np.flatnonzero(step[records[:i]] == step[record])
        if not len(before) or not _alike(numbers.told()[before[-1:]], numbers.told()[i:i + 1]).all():
            return False
        found = True
    return found


def _longest(mask: Mask) -> int:
    """The longest stretch in which it holds."""
    ends = np.flatnonzero(np.diff(np.r_[False, mask, False]))
    return int((ends[1::2] - ends[::2]).max(initial=0))


def _alike(one: Floats, other: Floats) -> Mask:
    with np.errstate(invalid="ignore"):  # two infinities
        near = np.abs(one - other) <= ALIKE * np.maximum(np.abs(one), np.abs(other))
    return np.asarray(near | (one == other) | (np.isnan(one) & np.isnan(other)))


def without_twins(series: Sequence[Series]) -> tuple[tuple[Series, ...], str]:
    """The series without those that tell the values of another one at its steps; what to say of it.

    Of "loss" and "train/loss" in one log the one with more values stays, else the one with more digits.
    """
    together: dict[tuple[str, str, int | None], list[Series]] = {}
    for s in series:
        together.setdefault((s.name, s.group, s.rank), []).append(s)
    gone: dict[int, str] = {}
    for same in together.values():
        main = finest(same) if len(same) > 1 else same[0]
        gone.update((id(s), f"{s.original} tells the values of {main.original} again") for s in same
                    if s is not main and _is_twin(s, main))
    return tuple(s for s in series if id(s) not in gone), "; ".join(dict.fromkeys(gone.values()))


def _is_twin(less: Series, more: Series) -> bool:
    if len(less) < FEWEST_TWINS or less.unit != more.unit or less.unit == "line" or less.original == more.original:
        return False
    if (np.diff(more.position) <= 0).any():
        return False
    at = np.minimum(np.searchsorted(more.position, less.position), len(more) - 1)
    return bool((more.position[at] == less.position).all() and _alike(more.values[at], less.values).all())
