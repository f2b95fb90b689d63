"""What may have been done to the axes of a row, as signed permutations of its cells: one list for every field.

An axis read from the other end, moved on by some places, cut into blocks that were read in turn, sorted as text; lines
of a short axis exchanged, or with the other sign; two axes exchanged; all values turned around. Each of them takes
every cell to another one, perhaps with the other sign, so that one search tries them all and can undo each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from traindx_tools.on_data.column import Array

LONG, ROLLED = 8, 16
"""Places of an axis that may be reversed, and that may be moved on."""
FURTHEST = 64
"""Places by which an axis is moved on at most."""
LINES, ALL_ORDERS = 8, 4
"""Lines of a short axis, and those of which every order is tried."""
BLOCKS = (2, 3, 4, 5, 6, 8, 12, 16)
TEXT_FROM = 11
"""Places from which on the order of text is another one than that of numbers."""


@dataclass(frozen=True, eq=False)
class Operation:
    """`kind`: reversed, moved, blocks, text, exchanged, sign, transposed, inverted. A cell k of a changed row is
    `signs[k]` times cell `index[k]` of what it should be; `signs` None: all as they are."""

    kind: str
    told: str
    index: Array
    signs: Array | None = None
    by: int = 0
    axis: int = 0

    def done(self, flat: Array) -> Array:
        """Rows (..., cells) after it."""
        moved = flat[..., self.index]
        return moved if self.signs is None else moved * self.signs

    def undone(self, flat: Array) -> Array:
        """Rows (..., cells) before it."""
        back = np.empty_like(flat)
        back[..., self.index] = flat if self.signs is None else flat * self.signs
        return back


def reversals(shape: tuple[int, ...]) -> Iterator[Operation]:
    """Each long axis from the other end."""
    places = np.arange(int(np.prod(shape))).reshape(shape)
    for axis in (a for a, n in enumerate(shape) if n >= LONG):
        yield Operation("reversed", f"{_axis(axis, shape)} runs the other way", np.flip(places, axis).reshape(-1),
                        axis=axis + 1)


def operations(shape: tuple[int, ...], whole: Sequence[int], signed: bool) -> Iterator[Operation]:
    """All others. `whole`: the axes whose places are those of the file, and no means of several; `signed`: whether
    values lie on both sides of zero, so that signs mean something."""
    places = np.arange(int(np.prod(shape))).reshape(shape)
    for axis in whole:
        yield from _along(places, axis)
        if 2 <= shape[axis] <= LINES:
            yield from _lines(places, axis, signed)
    for a, b in combinations([x for x in whole if shape[x] > 2], 2):
        if shape[a] == shape[b]:
            yield Operation("transposed", f"axes {a + 1} and {b + 1} are exchanged", np.swapaxes(places, a, b).reshape(
                -1), axis=a + 1)
    yield Operation("inverted", "its values are turned around (a - x)", places.reshape(-1),
                    -np.ones(places.size, np.float32))


def _along(places: Array, axis: int) -> Iterator[Operation]:
    size, name = places.shape[axis], _axis(axis, places.shape)

    def taken(order: Array) -> Array:
        return np.take(places, order, axis).reshape(-1)

    reach = min(FURTHEST, size // 3) if size >= ROLLED else 0
    for by in (s for s in range(-reach, reach + 1) if s):
        yield Operation("moved", f"{name} stands {abs(by)} place{'s' * (abs(by) > 1)} too "
                        f"{'far' if by > 0 else 'early'} (as rolled by {by:+d})", taken(np.roll(np.arange(size), by)),
                        by=by, axis=axis + 1)
    for block in (b for b in BLOCKS if size % b == 0 and 1 < b < size):
        for rows in {block, size // block} if size >= LONG else ():
            order = np.arange(size).reshape(rows, -1).T.reshape(-1)
            yield Operation("blocks", f"{name} is read in blocks of {rows} in turn (as {size // rows} x {rows} where "
                            f"{rows} x {size // rows} is meant)", taken(order), by=rows, axis=axis + 1)
    if size >= TEXT_FROM:
        order = np.array(sorted(range(size), key=str))
        said = f"{name} stands in the order of text (0, 1, 10, 11, ...) and not of numbers"
        yield Operation("text", said, taken(order), axis=axis + 1)
        yield Operation("text", f"{said}, undone once too often", taken(np.argsort(order)), axis=axis + 1)


def _lines(places: Array, axis: int, signed: bool) -> Iterator[Operation]:
    size, name = places.shape[axis], _axis(axis, places.shape)
    orders = permutations(range(size)) if size <= ALL_ORDERS else (
        _with_pair(size, i, j) for i, j in combinations(range(size), 2))
    for order in orders:
        moved = [k for k in range(size) if order[k] != k]
        if moved:
            said = (f"places {moved[0]} and {moved[1]} of {name} are exchanged" if len(moved) == 2 else
                    f"the places of {name} stand in the order {list(order)}")
            yield Operation("exchanged", said, np.take(places, order, axis).reshape(-1), by=len(moved), axis=axis + 1)
    for line in range(size) if signed else ():
        signs = np.ones(places.shape, np.float32)
        np.moveaxis(signs, axis, 0)[line] = -1.0
        yield Operation("sign", f"place {line} of {name} has the other sign", places.reshape(-1), signs.reshape(-1),
                        by=line, axis=axis + 1)


def _with_pair(size: int, i: int, j: int) -> tuple[int, ...]:
    order = list(range(size))
    order[i], order[j] = j, i
    return tuple(order)


def _axis(axis: int, shape: tuple[int, ...]) -> str:
    return "its only axis" if len(shape) == 1 else f"axis {axis + 1}"
