"""Which tensor of one file a tensor of another was made from, and how: as it is, with its axes or lines in another
order, times a number, plus a number, restored from codes.

A converter, an export and a quantisation give other names, and keep the values. What it did is read from the values
alone: a form counts where it leaves no more than the rounding of the narrower type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]
CLOSE = 0.02
"""Of the norm, that a form may leave: bfloat16 leaves 0.002, eight bits with a scale a line 0.01."""
_LINES = 2048
"""Lines of a matrix up to which another order of them is looked for."""
_LIKE = 0.98
"""Cosine of a line with itself, rounded."""
_ONE, _DIGITS = 0.01, 3
_MOST_AXES, _SLICES, _PARTS = 5, 16, 4


@dataclass(frozen=True)
class Origin:
    """`source`: the tensor that it was made from; `form`: how, equal for equal ways; `said`: the same in words."""

    source: str
    form: tuple[object, ...]
    said: str
    error: float
    axes: tuple[int, ...] | None = None
    """Where nothing but the order of the axes was changed: the order; None of any other form."""
    shape: tuple[int, ...] = ()
    """Of the source, where the axes are told."""
    order: tuple[int, ...] | None = None
    """Where rows stand in another order and nothing else was done: of each row the place that it had."""


@dataclass(frozen=True, eq=False)
class Held:
    """A tensor with its values, in all the ways in which its file may mean them (codes have scales of rows or columns).
    """

    name: str
    ways: tuple[tuple[str, Values], ...]

    @property
    def size(self) -> int:
        return self.ways[0][1].size

    @property
    def shape(self) -> tuple[int, ...]:
        return self.ways[0][1].shape


def marks(values: Values) -> NDArray[np.float64]:
    """Quantiles of the magnitudes over their root mean square: no order of the values and no factor changes them."""
    sizes = np.sort(np.abs(values.reshape(-1)))
    rms = float(np.sqrt(np.mean(sizes.astype(np.float64) ** 2)))
    return np.asarray(np.quantile(sizes, (0.2, 0.4, 0.6, 0.8, 0.95, 1.0)) / max(rms, 1e-30), np.float64)


def origins(one: Held, sources: Sequence[Held]) -> list[Origin]:
    """Every source that it may have been made from: plain forms first, other orders of lines where there is none."""
    whole = [s for s in sources if s.size == one.size]
    found = [o for source in whole for o in _plain(one, source)]
    return (found or [o for s in whole for o in _ordered(one, s)] or [o for s in sources for o in _sliced(one, s)]
            or [o for s in sources for o in _part_ordered(one, s)])


def _sliced(one: Held, source: Held) -> Iterator[Origin]:
    """Rows or columns of a longer source: what several projections were packed into, or an axis that was cut."""
    given = source.ways[0][1]
    for way, values in one.ways:
        longer = [a for a, (n, m) in enumerate(zip(given.shape, values.shape, strict=False)) if n != m]
        if given.ndim != values.ndim or len(longer) != 1 or given.shape[longer[0]] < values.shape[longer[0]]:
            continue
        axis, length, own = longer[0], given.shape[longer[0]], values.shape[longer[0]]
        step = max(math.gcd(length, own), length // _SLICES)
        for at in range(0, length - own + 1, step):
            made = _made(np.take(given, range(at, at + own), axis), values)
            if made is not None:
                form, said, error = made
                what = "values" if given.ndim == 1 else ("rows", "columns")[axis] if axis < 2 else f"axis {axis}"
                yield Origin(source.name, (way, what, at, *form), _said(way, f"{what} {at}-{at + own - 1}", said),
                             error)


def _part_ordered(one: Held, source: Held) -> Iterator[Origin]:
    """One of the equal parts of a packed source, with its rows in another order: heads whose values interleave."""
    given, rows = source.ways[0][1], one.shape[0]
    if given.ndim != 2 or len(one.shape) != 2 or given.shape[1] != one.shape[1] or given.shape[0] % rows:
        return
    for at in range(0, given.shape[0], rows) if rows < given.shape[0] <= _PARTS * rows else ():
        for origin in _ordered(one, Held(source.name, (("", given[at:at + rows]),))):
            yield replace(origin, form=(at, *origin.form), said=f"rows {at}-{at + rows - 1}, {origin.said}",
                          order=None if origin.order is None else tuple(i + at for i in origin.order))


def _plain(one: Held, source: Held) -> Iterator[Origin]:
    given = source.ways[0][1]
    for way, values in one.ways:
        for axes in permutations(range(given.ndim)) if 2 <= given.ndim <= _MOST_AXES else [tuple(range(given.ndim))]:
            turned = given.transpose(axes)
            if turned.shape == values.shape or (axes == tuple(range(given.ndim)) and _squeezed(given, values)):
                made = _made(turned.reshape(values.shape), values)
                if made is not None:
                    form, said, error = made
                    order = "" if axes == tuple(range(given.ndim)) else (
                        "transposed" if given.ndim == 2 else f"with axes in the order {list(axes)}")
                    yield Origin(source.name, (way, axes if order else (), *form), _said(way, order, said), error,
                                 axes if not form else None, given.shape)


    yield from _merged(one, source)


def _merged(one: Held, source: Held) -> Iterator[Origin]:
    """Axes of the source in some order, then put together to a matrix: heads and what each of them holds."""
    given = source.ways[0][1]
    if given.ndim <= 2 or given.ndim > _MOST_AXES or _squeezed(given, one.ways[0][1]):
        return
    for way, values in one.ways:
        for axes in permutations(range(given.ndim)) if values.ndim == 2 else ():
            sizes = [given.shape[a] for a in axes]
            if all(math.prod(sizes[:k]) != values.shape[0] for k in range(1, given.ndim)):
                continue
            made = _made(given.transpose(axes).reshape(values.shape), values)
            if made is not None and made[0] == ():
                said = f"with axes in the order {list(axes)}, put together to two"
                yield Origin(source.name, (way, "merged", axes), _said(way, said), made[2], axes,
                             given.shape)


def _squeezed(one: Values, other: Values) -> bool:
    return [n for n in one.shape if n > 1] == [n for n in other.shape if n > 1]


def _said(*words: str) -> str:
    return ", ".join(w for w in words if w) or "as it stands"


def _made(given: Values, values: Values) -> tuple[tuple[object, ...], str, float] | None:
    """Whether values are the given ones, times a number or plus one: the form, in words, and what it leaves."""
    size = float(np.linalg.norm(values))
    if not size > 0 or not _sampled_like(given, values):
        return None
    error = float(np.linalg.norm(values - given)) / size
    if error <= CLOSE:
        return (), "", error
    factor = float(np.vdot(given, values)) / max(float(np.vdot(given, given)), 1e-30)
    error = float(np.linalg.norm(values - factor * given)) / size
    if error <= CLOSE / 2 and abs(abs(factor) - 1) > _ONE:
        return ("times", round(factor, _DIGITS)), f"times {factor:.4g}", error
    if error <= CLOSE / 2 and factor < 0:
        return ("times", -1), "with the other sign", error
    shift = float(np.mean(values - given))
    error = float(np.linalg.norm(values - given - shift)) / max(float(np.linalg.norm(values - values.mean())), 1e-30)
    if error <= CLOSE / 2 and values.size >= 16:
        return ("plus", round(shift, _DIGITS)), f"plus {shift:.4g}", error
    return None


def _sampled_like(given: Values, values: Values) -> bool:
    """Whether a few values go together, so that most pairs cost nothing."""
    step = max(1, values.size // 512)
    x, y = given.reshape(-1)[::step].astype(np.float64), values.reshape(-1)[::step].astype(np.float64)
    x, y = x - x.mean(), y - y.mean()
    return abs(float(x @ y)) >= 0.9 * math.sqrt(float(x @ x) * float(y @ y)) > 0


def _ordered(one: Held, source: Held) -> Iterator[Origin]:
    """Rows or columns in another order."""
    given = source.ways[0][1]
    for way, values in one.ways:
        if given.ndim < 2 or given.shape != values.shape:
            continue
        for axis, what in enumerate(("rows", "columns")):
            order = _order(np.moveaxis(given, axis, 0), np.moveaxis(values, axis, 0))
            if order is not None:
                error = float(np.linalg.norm(np.take(given, order, axis) - values) / np.linalg.norm(values))
                if error <= CLOSE:
                    first = int(np.flatnonzero(order != np.arange(len(order)))[0])
                    said = f"with its {what} in another order ({what[:-1]} {first} was {what[:-1]} {order[first]})"
                    yield Origin(source.name, (way, what, hash(order.tobytes())), _said(way, said), error,
                                 order=None if axis else tuple(int(i) for i in order))


def _order(given: Values, values: Values) -> NDArray[np.intp] | None:
    """Of each line the place that it had, None where not every line had one of its own."""
    a, b = (x.reshape(len(x), -1) for x in (given, values))
    if not 4 <= len(a) <= _LINES or a.shape[1] < 8:
        return None
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-30) for x in (a, b))
    likeness = b @ a.T
    order = likeness.argmax(axis=1)
    known = likeness[np.arange(len(b)), order] >= _LIKE
    return order if known.all() and len(np.unique(order)) == len(order) else None
