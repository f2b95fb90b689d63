"""Two files of which one was made from the other: what was done to each tensor, and which was done otherwise.

A converter treats the same tensor of every block alike. The kinds of a file are its names without their numbers; of
each kind the usual way is known from the other members, and one that was made in another way, from another block, or
from nothing that the source holds, was left out or was done twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.origins import Held, Origin, marks, origins
from traindx_tools.on_weights.quantised import quantised

MOST_BYTES, MOST_TENSORS = 2**27, 600
FEWEST, SHARE = 3, 2 / 3
"""Members of a kind, and the share of them that were made in one way."""
SINGLE, KNOWN = 16, 0.8
"""Values of a tensor that is asked; share of the matrices whose origin is known, where a file is a conversion."""
_ALIKE, _PACKED = 0.06, 4
_NUMBER = re.compile(r"\d+")
Way = tuple[str, tuple[int, ...], tuple[object, ...]]
"""The kind of the source, how far its numbers are off, and the form."""


@dataclass(frozen=True)
class Odd:
    """A tensor that was not made as its kind: `expected`, `got` in words; `kind` of the oddness."""

    name: str
    source: str
    kind: str
    expected: str
    got: str
    usual: int
    of: int


@dataclass(frozen=True, eq=False)
class Member:
    """A tensor of a kind by the numbers of its name."""

    held: Held
    numbers: tuple[int, ...]
    found: tuple[Origin, ...]


@lru_cache(maxsize=2)
def held_of(checkpoint: Checkpoint) -> list[Held]:
    """Its weights as real numbers, codes restored; [] for a file that is too large. Raises UnreadableInput."""
    tensors = checkpoint.weights.tensors
    if sum(t.nbytes for t in tensors.values()) > MOST_BYTES or len(tensors) > MOST_TENSORS:
        return []
    codes = {q.tensor.name: q for q in quantised(tensors)}
    made = []
    for name, tensor in tensors.items():
        if tensor.size < SINGLE or not (tensor.floating or name in codes):
            continue
        if name in codes:
            restored = [(f"with a scale a {('row', 'column')[axis]}", r) for axis in (0, 1)
                        if (r := codes[name].restored(axis)) is not None]
            ways = tuple((w if len(restored) > 1 else "", np.asarray(r, np.float32)) for w, r in restored)
        else:
            ways = (("", np.asarray(tensor.load(), np.float32)),)
        if ways and all(np.isfinite(v).all() and np.ptp(v) > 0 for _, v in ways):
            made.append(Held(name, ways))
    return made


def members_of(made: Sequence[Held], sources: Sequence[Held]) -> list[Member]:
    """Each tensor of a file with what it may have been made from."""
    by_size: dict[int, list[tuple[Held, NDArray[np.float64]]]] = {}
    for source in sources:
        by_size.setdefault(source.size, []).append((source, marks(source.ways[0][1])))
    found = []
    for one in made:
        near = by_size.get(one.size, ())
        own = [marks(v) for _, v in one.ways] if near else []
        close = [s for s, m in near if min(float(np.abs(m - o).max() / np.abs(m).max()) for o in own) <= _ALIKE
                 or len(one.shape) < 2]
        longer = [s for n, held in by_size.items() if n > one.size and n <= _PACKED * one.size for s, _ in held]
        found.append(Member(one, _numbers(one.name), tuple(origins(one, [*close, *longer]))))
    return found


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(n) for n in _NUMBER.findall(name))


def known_share(members: Sequence[Member]) -> float:
    """The share of the matrices whose origin is known."""
    matrices = [m for m in members if len(m.held.shape) > 1]
    return sum(bool(m.found) for m in matrices) / len(matrices) if len(matrices) >= FEWEST else 0.0


def odd_ones(members: Sequence[Member], sources: Sequence[Held], *, lost: bool) -> Iterator[Odd]:
    """The members of each kind that were made otherwise; with `lost` those that were made from nothing there, too."""
    kinds: dict[tuple[str, tuple[int, ...]], list[Member]] = {}
    for member in members:
        kinds.setdefault((_NUMBER.sub("*", member.held.name), member.held.shape), []).append(member)
    by_name = {s.name: s for s in sources}
    for group in kinds.values():
        usual = _usual(group)
        if usual is not None:
            yield from _of_kind(group, usual, by_name, lost)


def _ways(member: Member) -> dict[Way, Origin]:
    found = {}
    for origin in member.found:
        theirs = _numbers(origin.source)
        off = tuple(a - b for a, b in zip(theirs, member.numbers, strict=True)) if len(theirs) == len(
            member.numbers) else ()
        found[_NUMBER.sub("*", origin.source), off, origin.form] = origin
    return found


def _usual(group: Sequence[Member]) -> Way | None:
    """The way in which most members of a kind were made."""
    if len(group) < FEWEST:
        return None
    counts = Counter(w for m in group for w in _ways(m))
    way, count = counts.most_common(1)[0] if counts else (None, 0)
    return way if count >= max(2, SHARE * len(group)) else None


def _of_kind(group: Sequence[Member], usual: Way, sources: Mapping[str, Held], lost: bool) -> Iterator[Odd]:
    made = {id(m): _ways(m) for m in group}
    good = sum(usual in ways for ways in made.values())
    example = next(ways[usual] for ways in made.values() if usual in ways)
    for member in group:
        ways = made[id(member)]
        if usual in ways:
            continue
        expected = _expected(member, usual)
        if expected not in sources:
            continue
        same = next((o for (kind, off, _), o in ways.items() if (kind, off) == usual[:2]), None)
        told = (member.held.name, expected)
        if same is not None:
            yield Odd(*told, "form", example.said, same.said, good, len(group))
        elif ways:
            other = next(iter(ways.values()))
            yield Odd(*told, "source", expected, f"{other.source} ({other.said})", good, len(group))
        elif lost and good >= FEWEST:
            yield Odd(*told, "lost", expected, _apart(member.held, sources[expected]), good, len(group))


def _expected(member: Member, usual: Way) -> str:
    """The source's name for a member, by the kind and the numbers of the usual way."""
    kind, off, _ = usual
    numbers = iter(a + b for a, b in zip(member.numbers, off, strict=True)) if len(off) == len(member.numbers) else None
    return _NUMBER.sub("#", kind) if numbers is None else re.sub(r"\*", lambda _: str(next(numbers, "")), kind)


def _apart(one: Held, source: Held) -> str:
    """How far a tensor is from its source at its best, in words."""
    values, given = one.ways[0][1], source.ways[0][1]
    tried = [given, *([given.T] if given.ndim == 2 else [])]
    errors = [float(np.linalg.norm(t.reshape(values.shape) - values) / np.linalg.norm(values)) for t in tried
              if t.shape == values.shape or t.size == values.size]
    return f"off by {min(errors):.2g} of its norm" if errors else "of another shape"


@lru_cache(maxsize=2)
def pair(one: Checkpoint, other: Checkpoint) -> tuple[list[Member], list[Held]] | None:
    """The tensors of the first as made from those of the second, where most of them were; None where they were not.

    The last pairs are kept, for all rules ask the same ones; `forget` lets go of them.
    """
    try:
        made, sources = held_of(one), held_of(other)
    except UnreadableInput:
        return None
    members = members_of(made, sources)
    return (members, sources) if known_share(members) >= KNOWN else None


def forget() -> None:
    """Lets go of the values that the last pairs hold."""
    pair.cache_clear()
    held_of.cache_clear()
