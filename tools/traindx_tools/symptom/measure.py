"""What a series does, measured for what a person said of it: pure arithmetic on the values.

Each function returns a `Measured`: whether it holds, whether the opposite is plain, and one sentence with the values.
Thresholds: a change counts from three times the noise on (about one in 370 by chance for one comparison of normal
noise) and from 2 % of the level, below which a person does not speak of it; a spike counts from six.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from traindx_tools.finding import Value
from traindx_tools.on_logs.curves.shapes import (
    Track,
    neighbourhood,
    noise,
    number,
    rank_correlation,
    smooth,
)
from traindx_tools.on_logs.run import Floats
from traindx_tools.symptom.window import Window

SIGMAS = 3.0
LEAST = 0.02
SPIKE = 6.0
ROUNDING = 0.001
"""Share by which two values differ that a person writes alike: three digits."""
SLOW = 0.15
"""Share of its level that a loss may improve by and still be called hardly moving."""


@dataclass(frozen=True)
class Measured:
    """`holds`: it does what was said. `against`: it plainly does not, from the first record to the last."""

    holds: bool
    against: bool
    statement: str
    values: Mapping[str, Value] = field(default_factory=dict)
    index: int | None = None
    """Where in the series it is seen best, as an index of the series."""
    until: int | None = None


def at(t: Track, i: int) -> str:
    """ "step 400" for the point with this index in the track."""
    return f"{t.unit} {t.x[i]:.10g}"


def ends(y: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float, float]:
    """Level at the beginning, level at the end and the noise between."""
    k = max(1, min(len(y) // 10, 50)) if len(y) >= 10 else 1
    return float(np.median(y[:k])), float(np.median(y[-k:])), noise(y)


def _plain(first: float, last: float, spread: float) -> bool:
    """Whether two levels differ by more than noise and by more than a person overlooks."""
    return abs(last - first) > max(SIGMAS * spread, LEAST * max(abs(first), abs(last)))


def moves(window: Window, upwards: bool) -> Measured:
    """Whether the values rise (or fall): from the best level before to the end."""
    t = window.cut
    local, centres = smooth(t)
    first, last, spread = ends(t.y)
    turn = int(np.argmin(local) if upwards else np.argmax(local))
    best = float(local[turn])
    tail = float(local[-1])
    holds = _plain(best, tail, spread) and (tail > best) == upwards and turn < len(local) - 1
    overall = _plain(first, last, spread)
    against = not holds and overall and (last > first) != upwards and len(t) >= 5
    word = "rises" if upwards else "falls"
    i = _raw_turn(t, int(centres[turn]), upwards)
    begin = i if holds else 0
    told = (
        f"{word if holds else 'goes'} from {number(float(t.y[begin]))} at {at(t, begin)} to {number(float(t.y[-1]))} "
        f"at {at(t, len(t) - 1)}"
    )
    return Measured(
        holds,
        against,
        told,
        {"from": best if holds else first, "to": tail if holds else last, "noise": spread},
        int(t.index[i if holds else 0]),
        int(t.index[-1]),
    )


def _raw_turn(t: Track, near: int, upwards: bool) -> int:
    """Where the record itself is lowest (or highest) around a turn of its smoothed course."""
    reach = max(1, len(t) // 20)
    first = max(0, near - reach)
    part = t.y[first : near + reach + 1]
    return first + int(np.argmin(part) if upwards else np.argmax(part))


def _medians(t: Track, first: float, last: float) -> str:
    """What the levels at both ends are, where they are not the values that the record has there."""
    if first == float(t.y[0]) and last == float(t.y[-1]):
        return ""
    return f"; medians of the first and the last tenth {number(first)} and {number(last)}"


def flat(window: Window, slow: bool = False) -> Measured:
    """Whether the values stay where they are: all along, or after they moved at first.

    `slow`: an improvement of up to 15 % of the level counts too.
    """
    t = window.cut
    first, last, spread = ends(t.y)
    where = f"from {at(t, 0)} to {at(t, len(t) - 1)}"
    values: dict[str, Value] = {"first": first, "last": last, "noise": spread, "records": len(t)}
    ends_at = int(t.index[0]), int(t.index[-1])
    if len(t) >= 2 and float(np.ptp(t.y)) == 0:
        return Measured(True, False, f"is {number(first)} in all {len(t)} records {where}", values, *ends_at)
    level = max(abs(first), abs(last))
    if not (_plain(first, last, spread) or _drifts(t)) or (slow and abs(last - first) <= SLOW * level):
        return Measured(
            True,
            False,
            f"is {number(float(t.y[0]))} at {at(t, 0)} and {number(float(t.y[-1]))} at {at(t, len(t) - 1)}"
            f"{_medians(t, first, last)} ({(last - first) / level if level else 0:+.1%})",
            values,
            *ends_at,
        )
    tail = t.part(len(t) // 2)
    middle, late, late_spread = ends(tail.y)
    if len(tail) >= 5 and not window.told and not _plain(middle, late, late_spread):
        return Measured(
            True,
            False,
            f"goes from {number(float(t.y[0]))} to {number(float(tail.y[0]))} at {at(tail, 0)} and then stays: "
            f"{number(float(t.y[-1]))} at {at(t, len(t) - 1)}{_medians(tail, middle, late)}",
            {**values, "since": float(tail.x[0])},
            int(tail.index[0]),
            int(tail.index[-1]),
        )
    against = not slow and abs(last - first) > max(2 * SIGMAS * spread, 0.2 * level) and len(t) >= 5
    return Measured(
        False,
        against,
        f"moves from {number(float(t.y[0]))} at {at(t, 0)} to {number(float(t.y[-1]))} at {at(t, len(t) - 1)}",
        values,
        *ends_at,
    )


def _drifts(t: Track) -> bool:
    """Whether the middle third is between the outer two and these differ by a tenth: no plateau, however rough."""
    k = len(t) // 3
    if k < 2:
        return False
    a, b, c = (float(np.median(part)) for part in (t.y[:k], t.y[k:-k], t.y[-k:]))
    ordered = min(a, c) <= b <= max(a, c) and abs(rank_correlation(t.x, t.y)) > 0.5
    return ordered and abs(c - a) > 0.1 * max(abs(a), abs(c))


def near_value(window: Window, value: float, relation: str, percent: bool) -> Measured:
    """Whether the values are at, above or below a value that was named.

    `percent`: the value was written as a share; a series in percent is compared with a hundred times it.
    """
    t = window.cut
    value = _scaled(value, t, percent)
    room = max(0.04 * abs(value), 2 * noise(t.y), 5e-4 if value == 0 else 0.0)
    inside = {"above": t.y >= value - room, "below": t.y <= value + room}.get(relation, np.abs(t.y - value) <= room)
    share, last = float(inside.mean()), float(t.y[-1])
    holds = share >= 0.5 or (relation in ("", "at") and bool(inside[-1])) or bool(inside[-1] and share >= 0.2)
    word = {"above": "at or above", "below": "at or below"}.get(relation, "within a few per cent of")
    count = f"{int(inside.sum())} of {len(t)} records"
    told = f"is {word} {number(value)} in {count} and {number(last)} at {at(t, len(t) - 1)}"
    hit = np.flatnonzero(inside)
    i = int(hit[0]) if len(hit) else 0
    return Measured(
        holds,
        False,
        told,
        {"value": value, "share": share, "last": last, "median": float(np.median(t.y))},
        int(t.index[i]),
        int(t.index[int(hit[-1]) if len(hit) else -1]),
    )


def short_of(window: Window, target: float, value: float | None, upwards: bool, percent: bool) -> Measured:
    """Whether the values end on the wrong side of an expected one; `upwards`: whether more would be better.

    `value`: what the person says that it is, which the record is held beside. Where the record ends at it, any miss is
    seen: a bar is missed by little as well. Reached is what is short of it by no more than rounding; a little less is
    neither seen nor refuted.
    """
    t = window.cut
    target = _scaled(target, t, percent)
    last, i = float(t.y[-1]), int(np.argmax(t.y) if upwards else np.argmin(t.y))
    best = float(t.y[i])
    short = target - last if upwards else last - target
    same = value is not None and abs(last - _scaled(value, t, percent)) <= ROUNDING * abs(last)
    holds = short > 0 if same else short > LEAST * abs(target)
    other = "" if value is None or _close(_scaled(value, t, percent), t) else f" ({number(value)} is said)"
    peak = "" if best == last else f", its best {number(best)} at {at(t, i)}"
    told = f"ends at {number(last)}{other} at {at(t, len(t) - 1)}{peak}; {number(target)} is expected"
    meant = value is None or abs(last - _scaled(value, t, percent)) <= 2 * LEAST * abs(last)
    reached = short <= ROUNDING * abs(target)
    return Measured(holds, not holds and meant and reached, told, {"last": last, "best": best, "target": target},
                    int(t.index[i]) if holds else int(t.index[-1]), int(t.index[-1]))


def _close(value: float, t: Track) -> bool:
    """Whether a value that was said is one of the record, by the digits that a person keeps."""
    return bool((np.abs(t.y - value) <= LEAST * abs(value)).any())


def bound(window: Window, value: float, floor: bool, percent: bool) -> Measured:
    """Whether the values never get below (or above) a value that was named: "never below 0.86"."""
    t = window.cut
    value = _scaled(value, t, percent)
    best = float(t.y.min() if floor else t.y.max())
    i = int(np.argmin(t.y) if floor else np.argmax(t.y))
    room = 0.03 * abs(value)
    holds = best >= value - room if floor else best <= value + room
    told = f"has its {'lowest' if floor else 'highest'} value of {number(best)} at {at(t, i)} (said: {number(value)})"
    return Measured(holds, not holds, told, {"value": value, "best": best}, int(t.index[i]), int(t.index[i]))


def zero(window: Window) -> Measured:
    """Whether the values are 0: a gradient that does not flow."""
    t = window.cut
    share = float((t.y == 0).mean())
    told = f"is exactly 0 in {int((t.y == 0).sum())} of {len(t)} records and {number(float(t.y[-1]))} at the end"
    return Measured(
        share >= 0.5, False, told, {"share": share, "last": float(t.y[-1])}, int(t.index[0]), int(t.index[-1])
    )


def _scaled(value: float, t: Track, percent: bool) -> float:
    """A value that was said in the scale of the record: 0.23 for a series in percent is 23."""
    largest = float(np.max(np.abs(t.y)))
    if percent and 0 < abs(value) <= 1 and largest > 1.5:
        return value * 100
    return value / 100 if percent and value > 1.5 and largest <= 1.0 else value


def spike(window: Window, run_of: Track | None = None) -> Measured:
    """The largest deviation from the usual level around it, in robust standard deviations of such deviations.

    Both signs count for what a person calls a peak in a score; the named place is looked at where one was named.
    """
    t = window.whole
    off = t.y - neighbourhood(t.y)
    spread = 1.4826 * float(np.median(np.abs(off - np.median(off)))) or noise(t.y) or 1e-12
    z = off / spread
    inside = np.arange(window.start, window.end)
    i = int(inside[np.argmax(z[inside])])
    usual = float(neighbourhood(t.y)[i])
    high = float(z[i])
    big = high >= SPIKE and (t.y[i] - usual) > LEAST * abs(usual)
    calm = np.flatnonzero(np.abs(z[i:]) < SIGMAS)
    back = f", back to the usual level at {at(t, i + int(calm[0]))}" if len(calm) and big else ""
    told = (
        f"is {number(t.y[i])} at {at(t, i)}, against {number(usual)} around it: {high:.0f} times the usual scatter "
        f"({number(spread)}){back}"
    )
    low = f"has no spike there: the largest value is {number(t.y[i])} at {at(t, i)}, {high:.1f} times the usual scatter"
    return Measured(
        big,
        not big and high < 4 and len(t) >= 20,
        told if big else low,
        {"peak": float(t.y[i]), "usual": usual, "times_scatter": high, "step": float(t.x[i])},
        int(t.index[i]),
        int(t.index[i]),
    )


def jump(window: Window, upwards: bool, middle: int | None = None, named: float | None = None) -> Measured:
    """The largest step between neighbouring levels (three records each), or the one at `middle`.

    `named`: the position that was spoken of: of all plain steps of the asked kind the one nearest to it is told,
    however much larger another is. The two values are those between which the record itself changes.
    """
    t = window.whole
    inside = range(max(window.start, 1), window.end)
    choices = [middle] if middle is not None and 0 < middle < len(t) else list(inside)[:20_000]
    if not choices:
        return Measured(False, False, "has a single record", {})
    steps = np.array([np.median(t.y[i : i + 3]) - np.median(t.y[max(0, i - 3) : i]) for i in choices])
    k = _nearest_step(t, choices, steps, upwards, named) if len(choices) > 1 else 0
    i, size = choices[k], float(steps[k])
    before = float(np.median(t.y[max(0, i - 3) : i]))
    after = float(np.median(t.y[i : i + 3]))
    spread = noise(t.y)
    near = t.y[max(0, i - 12) : i]
    if abs(size) >= 0.2 * abs(before) and len(near) >= 8:
        spread = min(spread, noise(near))  # a rough start says nothing of how rough it is before a plain step
    holds = abs(size) > max(SIGMAS * spread, 0.05 * abs(before)) and (size > 0) == upwards
    told = (f"goes from {number(float(t.y[i - 1]))} at {at(t, i - 1)} to {number(float(t.y[i]))} at {at(t, i)} "
            f"(medians of three records: {number(before)} and {number(after)})")
    if not holds:
        told = (
            f"has no step {'up' if upwards else 'down'} there beyond its scatter of {number(spread)}: the largest "
            f"change is from {number(before)} to {number(after)} at {at(t, i)}"
        )
    return Measured(
        holds,
        not holds and (size if upwards else -size) <= LEAST * abs(before) and len(t) >= 10,
        told,
        {"before": before, "after": after, "noise": spread, "step": float(t.x[i])},
        int(t.index[i]),
        int(t.index[i]),
    )


def _nearest_step(t: Track, choices: Sequence[int], steps: Floats, upwards: bool, named: float | None) -> int:
    """Which of the choices is told: the largest change between neighbouring records around the largest step of levels,
    or the one nearest to the named position among the changes that no scatter explains."""
    sign = 1.0 if upwards else -1.0
    raw = sign * np.array([t.y[i] - t.y[i - 1] for i in choices])
    if named is not None:
        spread, level = noise(t.y), np.array([abs(float(t.y[i - 1])) for i in choices])
        plain = np.flatnonzero((raw > np.maximum(SIGMAS * 2**0.5 * spread, 0.05 * level)) & (sign * steps > 0))
        if len(plain):
            return int(plain[np.argmin(np.abs(t.x[np.asarray(choices)[plain]] - named))])
    k = int(np.argmax(sign * steps))
    near = [j for j in range(max(0, k - 2), min(len(choices), k + 3)) if sign * steps[j] >= 0.5 * sign * steps[k]]
    return max(near, key=lambda j: float(raw[j]), default=k)


def rough(window: Window) -> Measured:
    """How much neighbouring values differ, against their level and against the whole course."""
    t = window.cut
    spread, level = noise(t.y), float(np.median(np.abs(t.y)))
    course = float(np.ptp(t.y))
    turns = float(np.mean(np.diff(np.sign(np.diff(t.y))) != 0)) if len(t) > 3 else 0.0
    share = spread / level if level else float("inf") if spread else 0.0
    holds = len(t) >= 5 and turns > 0.3 and (share > 0.05 or spread > 0.2 * course)
    told = (
        f"differs by about {number(spread)} from record to record ({share:.0%} of its level of {number(level)}), from "
        f"{number(float(t.y.min()))} to {number(float(t.y.max()))}"
    )
    return Measured(
        holds,
        not holds and share < 0.01 and len(t) >= 10,
        told,
        {"scatter": spread, "level": level, "lowest": float(t.y.min()), "highest": float(t.y.max())},
        int(t.index[0]),
        int(t.index[-1]),
    )


def grows(window: Window) -> Measured:
    """Whether the values grow with the step all along: by a tenth and in order (rank correlation above 0.8)."""
    t = window.cut
    first, last, _ = ends(t.y)
    order = rank_correlation(t.x, t.y) if len(t) >= 4 else 0.0
    holds = order > 0.8 and last - first > 0.05 * abs(first)
    per = (last - first) / (t.x[-1] - t.x[0]) if t.x[-1] != t.x[0] else 0.0
    told = (
        f"goes from {number(first)} at {at(t, 0)} to {number(last)} at {at(t, len(t) - 1)} ({number(per)} per {t.unit})"
    )
    level = not holds and abs(last - first) <= 0.02 * abs(first) and len(t) >= 10
    tail = t.part(len(t) // 2)
    middle, late, spread = ends(tail.y)
    off = len(t) >= 8 and last - first > 0.05 * abs(first) and late - middle <= max(spread, 0.02 * abs(middle))
    values: dict[str, Value] = {"first": first, "last": last, "per_step": per}
    if off:
        told += f"; from {at(tail, 0)} on it stays: {number(middle)} there"
        values["levels_off"] = float(tail.x[0])
    return Measured(holds or off, level, told, values, int(t.index[0]), int(t.index[-1]))


def ending(window: Window) -> Measured:
    """Where it ends and what was the best before; nothing is judged."""
    t = window.cut
    _, last, spread = ends(t.y)
    over = "ends at" if window.end == len(window.whole) else "is at the end of that part"
    told = (
        f"{over} {number(float(t.y[-1]))} ({at(t, len(t) - 1)}); lowest {number(float(t.y.min()))}, highest "
        f"{number(float(t.y.max()))}"
    )
    return Measured(
        True,
        False,
        told,
        {"last": last, "lowest": float(t.y.min()), "highest": float(t.y.max()), "noise": spread},
        int(t.index[-1]),
        int(t.index[-1]),
    )


def better_throughout(values: Floats, said: float, family: str) -> bool:
    """Whether every value is plainly better, by a fifth, than the level that was said: something else was meant."""
    if family == "score":
        return float(values.min()) > said + 0.2 * abs(said)
    return family == "loss" and float(values.max()) < said - 0.2 * abs(said)
