"""What a converter did to all tensors of a kind alike, and no library needs: no tensor is odd, and all are wrong.

Libraries differ in where the channels of a kernel stand, never in which of its places come first: height and width keep
their order, from left to right and from top to bottom. A kernel whose axes were reversed instead of put into the other
order has height and width exchanged, in every layer, and no shape shows it. Gates of a recurrent layer are the other
way round: libraries read them in orders of their own, and a plain transposition keeps that of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.conversions import Member
from traindx_tools.on_weights.layouts import plain
from traindx_tools.on_weights.origins import CLOSE, Held
from traindx_tools.on_weights.recurrent import CALLED, ORDERS

FEWEST = 2
"""Kernels that show one way."""
MOST_PLACES = 31
Values = NDArray[np.float32]


@dataclass(frozen=True)
class Exchanged:
    """Kernels whose axes of places were exchanged, or flipped: `kind`, the first of them, and how many."""

    kind: str
    names: tuple[str, ...]
    source: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]


def places_exchanged(members: Sequence[Member]) -> Exchanged | None:
    """All kernels with two axes of places, in the other order than in the source; None where one of them is not."""
    kernels = [m for m in members if len(m.held.shape) == 4 and (found := plain(m)) and found[0].shape]
    kernels = [m for m in kernels if {len(o.axes or ()) for o in plain(m)} == {4}]
    at = _places([plain(m)[0].shape for m in kernels])
    if at is None:
        return None
    wide = [m for m in kernels if plain(m)[0].shape[at] > 1]
    orders = [{_is_exchanged(o.axes, at) for o in plain(m) if o.axes is not None} for m in wide]
    if len(wide) < FEWEST or any(o != {True} for o in orders):
        return None
    first = wide[0]
    origin = plain(first)[0]
    return Exchanged("exchanged", tuple(m.held.name for m in wide), origin.source, first.held.shape, origin.axes or ())


def _places(shapes: Sequence[tuple[int, ...]]) -> int | None:
    """Where the two axes of places begin in the kernels of a source: equal in each, and the same axes in all."""
    fits = [k for k in (0, 1, 2) if shapes and all(s[k] == s[k + 1] <= MOST_PLACES for s in shapes)]
    varied = [k for k in fits if len({s[a] for s in shapes for a in range(4) if a not in (k, k + 1)}) > 1
              or len(shapes) == 1]
    return varied[0] if len(varied) == 1 else None


def _is_exchanged(axes: tuple[int, ...], at: int) -> bool:
    return axes.index(at) > axes.index(at + 1)


def flipped(members: Sequence[Member], sources: Sequence[Held]) -> Iterator[Exchanged]:
    """Kernels that are those of the source once their places are read from the other end."""
    found = []
    for member in members:
        if member.found or not 3 <= len(member.held.shape) <= 5:
            continue
        seen = next(((s, axes, kind) for s in sources if sorted(s.shape) == sorted(member.held.shape)
                     for axes, kind in _flips(member.held.ways[0][1], s.ways[0][1])), None)
        if seen is not None:
            found.append((member, *seen))
    for kind in dict.fromkeys(k for *_, k in found):
        mine = [f for f in found if f[3] == kind]
        if len(mine) >= FEWEST:
            member, source, axes, _ = mine[0]
            yield Exchanged(kind, tuple(m.held.name for m, *_ in mine), source.name, member.held.shape, axes)


_ORDERS = {3: ((0, 1, 2), (2, 1, 0)), 4: ((0, 1, 2, 3), (3, 2, 0, 1), (2, 3, 1, 0), (0, 2, 3, 1), (0, 3, 1, 2)),
           5: ((0, 1, 2, 3, 4), (4, 3, 0, 1, 2), (2, 3, 4, 1, 0))}
"""How libraries put the axes of a kernel: channels before the places, behind them, or on both sides."""


def _flips(values: Values, given: Values) -> Iterator[tuple[tuple[int, ...], str]]:
    if given.ndim != values.ndim:
        return
    size = float(np.linalg.norm(values))
    for axes in _ORDERS[given.ndim]:
        turned = given.transpose(axes)
        if turned.shape != values.shape:
            continue
        short = [a for a, n in enumerate(values.shape) if 1 < n <= MOST_PLACES]
        for count in (1, 2, 3):
            for some in combinations(short, count):
                if float(np.linalg.norm(np.flip(turned, some) - values)) <= CLOSE * size:
                    yield axes, f"flipped along axis {' and '.join(map(str, some))}"
                    return


_TORCH = re.compile(r"weight_hh(?:_l\d+(?:_reverse)?)?$")
_KERAS = re.compile(r"recurrent_kernel(?::0)?$")
"""What both libraries call the matrix from the state to the gates, whatever the layer is called."""


def gates_kept(members: Sequence[Member]) -> Exchanged | None:
    """Recurrent layers with the gates in the order of the source, where the other library reads another one."""
    kept = []
    for member in members:
        for origin in plain(member):
            names = member.held.name, origin.source
            libraries = next(((a, b) for a, b, own, theirs in (("torch", "keras", _TORCH, _KERAS),
                                                               ("keras", "torch", _KERAS, _TORCH))
                              if own.search(names[0]) and theirs.search(names[1])), None)
            gates = max(member.held.shape) // min(member.held.shape)
            if libraries is None or len(member.held.shape) != 2:
                continue
            one, other = (ORDERS.get((library, gates), "") for library in libraries)
            if one != other:
                kept.append((member, origin, f"{_called(other)} where {libraries[0]} reads {_called(one)}"))
    others = sum(bool(_TORCH.search(m.held.name) or _KERAS.search(m.held.name)) for m in members) - len(kept)
    if not kept or others > len(kept):
        return None
    member, origin, order = kept[0]
    return Exchanged(f"gates as {order}", tuple(m.held.name for m, *_ in kept), origin.source, member.held.shape,
                     origin.axes or ())


def _called(order: str) -> str:
    return ", ".join(CALLED[g] for g in order)
