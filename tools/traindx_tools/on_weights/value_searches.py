"""Tables of numbers that a configuration gives: noise schedules, slopes, ranges, quantiles, buckets, lists."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.noise_schedules import ENDS, FORMS, STARTS, STEPS, WORDS, Schedule, betas, made_of, near
from traindx_tools.on_weights.table_formulas import BASES, Formulas, of_base, rotary, sines
from traindx_tools.on_weights.table_settings import Settings
from traindx_tools.on_weights.told_table import Told, few_wrong, of_rows, of_setting

Array = NDArray[np.float64]
_Found = tuple[Schedule, str, NDArray[np.bool_], Array]
"""A schedule, the table that was made of its betas, which values agree, and the values of the formula."""
_MOST, _FEWEST = 0.6, 8
_DIGITS = 2e-3


def noise(table: Array, settings: Settings) -> Told | None:
    """A table of a diffusion's noise over its steps."""
    form = WORDS.get(settings.word("beta_schedule") or "")
    start, end, steps = (settings.number(n) for n in ("beta_start", "beta_end", "timesteps"))
    if form == "constant" or (form is None and (start is None or end is None)) or not _rises_or_falls(table):
        return None
    if form == "cosine":  # it has no ends: a `beta_max` beside it is where it is cut off
        start = end = None
    right = _schedule(table, form, start, end, len(table))
    if right is not None and right[2].all():
        other = steps is not None and abs(steps - len(table)) > 1
        return of_setting("noise", f"{right[1]} of a {right[0].form} schedule", "the number of steps", int(steps or 0),
                          len(table)) if other else None
    return _other_schedule(table, form, start, end, steps) or (None if right is None else _steps(table, right))


def _rises_or_falls(table: Array) -> bool:
    up = float((np.diff(table) > 0).mean()) if len(table) >= _FEWEST else 0.5
    return max(up, 1 - up) >= _MOST and bool(np.isfinite(table).all()) and not (table.min() < 0 < table.max())


def _other_schedule(table: Array, form: str | None, start: float | None, end: float | None, steps: float | None
                    ) -> Told | None:
    """The one setting another value of which makes the table."""
    size = len(table)
    tried = (("beta_schedule", form, (None, start, end)), ("beta_end", end, (form, start, None)),
             ("beta_start", start, (form, None, end)),
             ("the number of steps", steps or float(size), (form, start, end)))
    for setting, asked, (f, a, b) in tried:
        if asked is None:
            continue
        for n in STEPS if setting == "the number of steps" else (size,):
            found = _schedule(table, f, a, b, n) if n >= size else None
            if found is not None and found[2].all():
                made = found[0]
                held = {"beta_schedule": made.form, "beta_end": made.end, "beta_start": made.start}.get(setting, n)
                return of_setting("noise", f"{found[1]} of a {made.form} schedule", setting, asked, held)
    return None


def _steps(table: Array, right: _Found) -> Told | None:
    """A table of which most steps are as they are told."""
    with np.errstate(all="ignore"):  # a range may be of many orders: each step by its own size
        apart = np.nan_to_num(np.abs(table / right[3] - 1), nan=0.0, posinf=1.0)
    wrong = few_wrong(apart, 1.0)
    return of_rows("noise", f"{right[1]} of a {right[0].form} schedule", wrong, len(table), "steps") if wrong else None


def _schedule(values: Array, form: str | None, start: float | None, end: float | None, steps: int
              ) -> _Found | None:
    """The schedule and the table of it of which the most values are there. What is None may be anything usual."""
    best: _Found | None = None
    for schedule in _schedules(form, start, end, steps):
        for name, made in made_of(betas(schedule)):
            found = near(values, made[: len(values)])
            if best is None or found.sum() > best[2].sum():
                best = (schedule, name, found, made[: len(values)])
        if best is not None and best[2].all():
            break
    return best


def _schedules(form: str | None, start: float | None, end: float | None, steps: int) -> Iterator[Schedule]:
    for f in FORMS if form is None else (form,):
        if f == "cosine":
            yield Schedule(f, 0.0, 0.0, steps)
            continue
        for a in STARTS if start is None else (start,):
            for b in ENDS if end is None else (end,):
                if 0 < a < b < 1:
                    yield Schedule(f, a, b, steps)


def base(table: Array, settings: Settings) -> Told | None:
    """Sines of positions or of steps, and caches of rotary angles, with another base."""
    begins = np.abs(table[0] * (1 - table[0])).max() <= 0.03  # the first place: sines of 0, cosines of 1
    if min(table.shape) < 4 or np.abs(table).max() > 1.001 or not begins:
        return None
    kinds: tuple[tuple[str, Formulas], ...] = (("rope_theta", rotary), ("max_period", sines))
    for setting, formulas in kinds:
        asked = settings.number(setting)
        if asked is None or asked <= 1 or of_base(table, formulas, asked):
            continue
        for other in BASES:
            if other != asked and (formula := of_base(table, formulas, other)):
                return of_setting("positions", formula, setting, asked, other)
    return None


def slopes(table: Array, settings: Settings) -> Told | None:
    """Slopes of linear biases (ALiBi), for another number of heads."""
    values = table.reshape(-1)
    size = len(values)
    if not 4 <= size <= 256 or not 0 < values.min() <= values.max() < 1:
        return None
    most = settings.number("alibi_bias_max") or 8.0
    if _close(values, _alibi(size, most)) or _close(-values, -np.sort(_alibi(size, most))[::-1]):
        return None
    for heads in (8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128) if settings.number("heads") == size else ():
        if heads > size and _close(values, _alibi(heads, most)[:size]):
            return of_setting("slopes", f"the slopes of the first {size} heads", "the number of heads", size, heads)
    if settings.number("alibi_bias_max") is not None:
        for other in (4.0, 8.0, 16.0, 32.0):
            if other != most and _close(values, _alibi(size, other)):
                return of_setting("slopes", f"slopes of {size} heads", "alibi_bias_max", most, other)
    wrong = few_wrong(np.abs(values / _alibi(size, most) - 1), 1.0, fewest=4)
    return of_rows("slopes", f"the slopes of {size} heads (2^(-{most:g} i/n))", wrong, size, "heads") if wrong else None


def _alibi(heads: int, most: float) -> Array:
    """Press et al. 2022; of a number that is no power of two, those of the power below and every second of the next."""
    power = 2 ** int(np.floor(np.log2(heads)))
    made = 2.0 ** (-most / power * np.arange(1, power + 1))
    if power == heads:
        return np.asarray(made)
    more = 2.0 ** (-most / (2 * power) * np.arange(1, 2 * power + 1))[::2]
    return np.concatenate([made, more[: heads - power]])


def _close(values: Array, made: Array) -> bool:
    return len(values) == len(made) and bool((np.abs(values - made) <= _DIGITS * np.abs(made)).all())


def support(table: Array, settings: Settings) -> Told | None:
    """Equal steps between two ends that the configuration names: the values of a distribution over returns."""
    values = table.reshape(-1)
    low, high = settings.number("v_min"), settings.number("v_max")
    if len(values) < 8 or low is None or high is None or low >= high:
        return None
    steps = np.diff(values)
    even = np.abs(steps - np.median(steps)) <= 1e-3 * abs(float(np.median(steps)))
    if np.median(steps) <= 0 or even.mean() < 1 or (
            min(abs(values[0] - low), abs(values[-1] - high)) > 1e-3 * (high - low)):
        return None
    name, asked, found = ("v_max", high, float(values[-1])) if abs(values[0] - low) <= 1e-3 * (high - low) else (
        "v_min", low, float(values[0]))
    if abs(asked - found) <= 1e-3 * (high - low):
        return None
    return of_setting("support", f"{len(values)} equal steps from {values[0]:g} to {values[-1]:g}", name, asked, found)


def buckets(table: Array, settings: Settings) -> Told | None:
    """Buckets of relative places (Raffel et al. 2020), with another number of them or another distance."""
    asked, far = settings.number("buckets"), settings.number("max_distance")
    shape = tuple(n for n in table.shape if n > 1)
    if asked is None or far is None or len(shape) != 2 or min(shape) < 16 or table.min() != 0:
        return None
    grid = table.reshape(shape)
    if _of_buckets(grid, int(asked), int(far)):
        return None
    for count in (8, 16, 24, 32, 48, 64, 128):
        if count != asked and _of_buckets(grid, count, int(far)):
            return of_setting("buckets", "relative places in buckets", "the number of buckets", int(asked), count)
    for distance in (16, 20, 32, 64, 80, 100, 128, 200, 256, 400, 512, 800, 1000, 1024):
        if distance != far and _of_buckets(grid, int(asked), distance):
            return of_setting("buckets", "relative places in buckets", "the largest distance", int(far), distance)
    return None


def _of_buckets(grid: Array, count: int, far: int) -> bool:
    place = np.arange(grid.shape[1])[None] - np.arange(grid.shape[0])[:, None]
    return any(np.array_equal(_bucket(place, count, far, both), grid) for both in (True, False))


def _bucket(place: NDArray[np.intp], count: int, far: int, both: bool) -> Array:
    added = np.zeros_like(place)
    if both:
        count //= 2
        added, place = np.where(place > 0, count, 0), np.abs(place)
    else:
        place = -np.minimum(place, 0)
    exact = count // 2
    if exact < 1 or far <= exact:
        return np.full(place.shape, -1.0)
    log = exact + (np.log(np.maximum(place, 1) / exact) / np.log(far / exact) * (count - exact)).astype(int)
    return np.asarray(added + np.where(place < exact, place, np.minimum(log, count - 1)), np.float64)


def listed(table: Array, settings: Settings) -> Told | None:
    """Numbers of a list in the configuration, or what follows from it for classes, in another order."""
    values = table.reshape(-1)
    if not settings.lists or len(np.unique(values)) < 4 or not np.isfinite(values).all():
        return None
    for name, told in settings.lists.items():
        made_all = list(_of_list(np.array(told))) if len(told) == len(values) else []
        if any(_close(values, made) for _, made in made_all):
            return None
        for formula, made in made_all:
            if _close(np.sort(values), np.sort(made)) and len(np.unique(made)) >= 4:
                wrong = np.flatnonzero(np.abs(values - made) > _DIGITS * np.abs(made))
                return Told("listed", f"holds {formula.format(name)} in another order: {len(wrong)} of {len(values)} "
                            f"entries (the first is {int(wrong[0])})", rows=tuple(int(i) for i in wrong))
            wrong_few = few_wrong(np.abs(values - made), float(np.ptp(made)), fewest=4)
            if wrong_few and len(np.unique(np.delete(values, wrong_few))) >= 4:
                return of_rows("listed", formula.format(name), wrong_few, len(values), "entries")
    return None


def _of_list(told: Array) -> Iterator[tuple[str, Array]]:
    """The list, and of counts of classes: shares, their logarithms, and weights."""
    yield "'{}'", told
    if (told > 0).all():
        share = told / told.sum()
        yield "the shares of '{}'", share
        yield "the logarithms of the shares of '{}'", np.log(share)
        yield "the logarithms of '{}'", np.log(told)
        yield "the inverse of '{}' times its mean", told.mean() / told
        yield "the inverse of '{}'", 1 / told
        yield "the inverse of '{}' with mean 1", (1 / told) / (1 / told).mean()
