"""Two files of one model in two libraries: how the axes of each tensor were turned, and of which otherwise.

A library keeps the weight of a dense layer as inputs by outputs or the other way round, and that of a convolution with
its channels first or last, all layers alike. Where the axes have different lengths the shape shows how a matrix was
turned; where it is square only the values do, and a square one that was turned as no other one was is odd. What is
flattened behind the last convolution has its values in the order of the library: where the channels of the convolutions
changed their place, so must the inputs of the dense layer behind them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.on_weights.conversions import Member
from traindx_tools.on_weights.origins import Origin

FEWEST, SHARE = 3, 2 / 3
"""Tensors that were turned in one way, before one that was not is odd: one of them must show it by its shape, or two of
them by their shapes alone. Share of them where axes were put together, which no shape shows."""
_LEAF = re.compile(r"[^./]*$")
_TO_FIRST = {3: (2, 1, 0), 4: (3, 2, 0, 1), 5: (4, 3, 0, 1, 2)}
_TO_LAST = {4: (2, 3, 1, 0), 5: (2, 3, 4, 1, 0)}
"""How axes are turned where the channels of kernels go from behind the places to before them, and back, by their
number."""
Axes = tuple[int, ...]


@dataclass(frozen=True)
class Turned:
    """Tensors that were turned otherwise than the others with the same last names."""

    names: tuple[str, ...]
    source: str
    """Of the first of them."""
    shape: tuple[int, ...]
    axes: Axes
    usual: Axes
    others: int
    """Tensors that were turned in the usual way."""


@dataclass(frozen=True)
class Flattened:
    """A dense layer behind a convolution whose inputs kept the order of the other library."""

    name: str
    source: str
    inputs: int
    channels: int
    behind: str
    """The convolution, by its name."""
    convolutions: int
    axes: int
    """Of its kernel."""
    to_first: bool
    """Whether the channels of the kernels went before the places."""


def turned_otherwise(members: Sequence[Member]) -> Iterator[Turned]:
    """Square matrices and kernels whose axes stand otherwise than those of the others with the same last names."""
    for (_, _, shape), group in _sorts(members).items():
        ways = {id(m): {o.axes for o in plain(m) if o.axes is not None} for m in group}
        shown = [m for m in group if len(set(m.held.shape)) > 1]
        usual = _of_most(list(ways.values())) if shape else (
            set.intersection(*(ways[id(m)] for m in shown)) if shown else set())
        if len(usual) != 1:
            continue  # the shapes themselves say that there is no one way
        (way,) = usual
        agree = [m for m in group if way in ways[id(m)] and len(ways[id(m)]) == 1]
        odd = [m for m in group if way not in ways[id(m)]]
        if odd and (len(agree) >= FEWEST or len(shown) >= FEWEST - 1):
            yield from _told(odd, ways, way, len(agree))


def _of_most(ways: Sequence[set[Axes]]) -> set[Axes]:
    """The way of two thirds and more."""
    (way, count), = Counter(w for held in ways for w in held).most_common(1)
    return {way} if count >= max(FEWEST, SHARE * len(ways)) else set()


def _told(odd: Sequence[Member], ways: dict[int, set[Axes]], usual: Axes, others: int) -> Iterator[Turned]:
    by_way: dict[Axes, list[Member]] = {}
    for member in odd:
        by_way.setdefault(min(ways[id(member)]), []).append(member)
    for axes, own in by_way.items():
        yield Turned(tuple(m.held.name for m in own), plain(own[0])[0].source, own[0].held.shape, axes, usual, others)


def _sorts(members: Sequence[Member]) -> dict[tuple[str, int, tuple[int, ...]], list[Member]]:
    """Members of two axes and more, by the last pieces of their names in both files and by how many axes there are;
    where axes were put together, by their lengths as well: only what has the same heads is put together alike."""
    sorts: dict[tuple[str, int, tuple[int, ...]], list[Member]] = {}
    for member in members:
        found = plain(member)
        if found and len(member.held.shape) > 1:
            leaves = "/".join(_leaf(n) for n in (member.held.name, found[0].source))
            own, shape = len(member.held.shape), found[0].shape
            sorts.setdefault((leaves, own, shape if len(shape) != own else ()), []).append(member)
    return sorts


def _leaf(name: str) -> str:
    found = _LEAF.search(name)
    return re.sub(r"\d+", "*", found[0]) if found is not None else name


def plain(member: Member) -> list[Origin]:
    """Its origins with the axes in some order and nothing else done."""
    return [o for o in member.found if o.axes is not None]


def flattened(members: Sequence[Member]) -> Iterator[Flattened]:
    """Dense layers whose inputs are places by channels of a convolution that was turned, and stand as they stood."""
    for axes_of, to_first in ((_TO_FIRST, True), (_TO_LAST, False)):
        kernels = sorted((m for m in members if axes_of.get(len(m.held.shape)) in {o.axes for o in plain(m)}
                          and len(set(m.held.shape)) > 1), key=lambda m: _natural(m.held.name))
        if kernels:
            yield from _behind(members, kernels, to_first)


def _behind(members: Sequence[Member], kernels: Sequence[Member], to_first: bool) -> Iterator[Flattened]:
    out, into = (0, 1) if to_first else (-1, -2)
    channels = {m.held.shape[out] for m in kernels}
    last = [m for m in kernels if m.held.shape[out] not in {k.held.shape[into] for k in kernels}] or kernels[-1:]
    dense = [m for m in members if len(m.held.shape) == 2 and any(len(o.axes or ()) == 2 for o in plain(m))]
    vectors = {m.held.shape[0] for m in members if len(m.held.shape) == 1}
    for member in dense:
        inputs = member.held.shape[1 if to_first else 0]
        given = channels | vectors | {m.held.shape[0 if to_first else 1] for m in dense if m is not member}
        behind = next((k for k in last if inputs > k.held.shape[out] > 1 and inputs % k.held.shape[out] == 0), None)
        if behind is not None and inputs not in given:
            yield Flattened(member.held.name, plain(member)[0].source, inputs, behind.held.shape[out],
                            behind.held.name, len(kernels), len(behind.held.shape), to_first)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d+)", name)]
