"""How the names of two checkpoints match: as they are, or after one prefix is exchanged, or with layers offset by a
number.

The exchange is found, not listed: each name without a partner is laid beside those of the other file with the same
shape that end alike; what stands before the common end is a vote for one exchange of prefixes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from traindx_tools.on_weights.tensor import Tensor

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
MOST_VOTES = 400
"""Names that vote; a file with more repeats itself."""


@dataclass(frozen=True)
class Renaming:
    """A change of names: `old` at the beginning becomes `new`, the first number grows by `offset`."""

    old: str = ""
    new: str = ""
    offset: int = 0

    def __call__(self, name: str) -> str | None:
        """The new name, None where it does not apply."""
        if not name.startswith(self.old):
            return None
        rest = self.new + name[len(self.old):]
        return rest if not self.offset else _NUMBER.sub(lambda m: str(int(m[0]) + self.offset), rest, count=1)

    def __str__(self) -> str:
        if self.offset:
            return f"layer numbers {'raised' if self.offset > 0 else 'lowered'} by {abs(self.offset)}"
        if not self.new:
            return f"'{self.old}' taken away"
        return f"'{self.old}' replaced by '{self.new}'" if self.old else f"'{self.new}' put in front"


@dataclass(frozen=True)
class Matched:
    """Names of two files laid beside each other. `pairs`: (first's name, second's name)."""

    first: Mapping[str, Tensor]
    second: Mapping[str, Tensor]
    pairs: tuple[tuple[str, str], ...]
    """With the same shape, as they are."""
    renaming: Renaming | None
    renamed: tuple[tuple[str, str], ...]
    """With the same shape after the renaming."""

    @cached_property
    def shapes(self) -> tuple[str, ...]:
        """Names in both with other shapes."""
        return tuple(n for n, t in self.first.items() if n in self.second and self.second[n].shape != t.shape)

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Names of the first that the second lacks, with no renaming either."""
        taken = {a for a, _ in (*self.pairs, *self.renamed)}
        return tuple(n for n in self.first if n not in taken and n not in self.second)

    @cached_property
    def unexpected(self) -> tuple[str, ...]:
        """Names of the second that the first lacks."""
        taken = {b for _, b in (*self.pairs, *self.renamed)}
        return tuple(n for n in self.second if n not in taken and n not in self.first)

    @property
    def with_renaming(self) -> str:
        """How many match with it, in words: what an offset moves is counted anew, matched as it is or not."""
        moves = self.renaming is not None and self.renaming.offset
        return f"{len(self.renamed)} {'in all' if moves else 'more'} with {self.renaming}"

    @property
    def all_pairs(self) -> tuple[tuple[str, str], ...]:
        return (*self.pairs, *self.renamed)

    @property
    def lost(self) -> int:
        """Values of the first that a load by name from the second would leave as they are."""
        return sum(t.size for t in self.first.values()) - sum(self.first[a].size for a, _ in self.pairs)


def match(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> Matched:
    """Lays the names of two checkpoints beside each other."""
    pairs = tuple((n, n) for n, t in first.items() if n in second and second[n].shape == t.shape)
    left = {n: t for n, t in first.items() if n not in second}
    free = {n: t for n, t in second.items() if n not in first}
    best: tuple[Renaming | None, tuple[tuple[str, str], ...]] = (None, ())
    for renaming in (*_prefixes(left, free), *_offsets(first, second)):
        a, b = (left, free) if not renaming.offset else (first, second)
        made = tuple((n, new) for n, t in a.items() if (new := renaming(n) or "") in b and b[new].shape == t.shape)
        if len(made) > len(best[1]):
            best = (renaming, made)
    return Matched(first, second, pairs, *_worth(best, len(left), pairs))


def _worth(best: tuple[Renaming | None, tuple[tuple[str, str], ...]], left: int, pairs: Sequence[tuple[str, str]]
           ) -> tuple[Renaming | None, tuple[tuple[str, str], ...]]:
    """A renaming counts where it matches half of what has no partner; an offset where it matches more than names do."""
    renaming, made = best
    if renaming is None or (renaming.offset and len(made) <= len(pairs)):
        return None, ()
    return (renaming, made) if renaming.offset or len(made) >= max(2, left / 2) or len(made) == left else (None, ())


def _prefixes(left: Mapping[str, Tensor], free: Mapping[str, Tensor]) -> list[Renaming]:
    """The exchanges of prefixes with the most votes."""
    by_end: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for name, tensor in free.items():
        by_end.setdefault((_end(name), tensor.shape), []).append(name)
    votes: Counter[tuple[str, str]] = Counter()
    step = max(1, len(left) // MOST_VOTES)
    for name in list(left)[::step]:
        for other in by_end.get((_end(name), left[name].shape), ())[:MOST_VOTES]:
            votes[_before(name, other)] += 1
    return [Renaming(old, new) for (old, new), _ in votes.most_common(6) if old != new]


def _end(name: str) -> str:
    return name.rpartition(".")[2]


def _before(name: str, other: str) -> tuple[str, str]:
    """What stands before the parts that both end with."""
    one, two = name.split("."), other.split(".")
    common = 0
    while common < min(len(one), len(two)) and one[-1 - common] == two[-1 - common]:
        common += 1
    heads = one[: len(one) - common], two[: len(two) - common]
    return ("".join(f"{p}." for p in heads[0]), "".join(f"{p}." for p in heads[1]))


def _offsets(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> list[Renaming]:
    """Layer numbers that begin elsewhere: where one file counts from 0 and the other from 1 or more."""
    starts = [_lowest(m) for m in (first, second)]
    if None in starts or starts[0] == starts[1]:
        return []
    return [Renaming(offset=starts[1] - starts[0])]  # type: ignore[operator]


def _lowest(names: Mapping[str, Tensor]) -> int | None:
    numbers = [int(m[0]) for n in names if (m := _NUMBER.search(n))]
    return min(numbers, default=None)
