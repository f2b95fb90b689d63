"""One use of a key, and what follows from two uses of the same one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.on_jax.places import Place, parting

DRAW, SPLIT = "draw", "split"
TWICE, EVERY_ITERATION, SEVERAL_ELEMENTS = "used twice", "every iteration", "several elements"


@dataclass(frozen=True)
class Use:
    """A draw from a key, or its split. `branches`: the branches of `cond` around it; `loops`: number and trip count."""

    key: int
    use: str
    op: str
    place: Place | None
    path: tuple[str, ...]
    branches: tuple[tuple[int, int], ...]
    loops: tuple[tuple[int, int | None], ...]
    order: int
    calls: tuple[Place, ...] = ()
    """The lines of the user's code that led to it, the innermost first."""


@dataclass(frozen=True)
class Reuse:
    """Two uses of one key; the same one twice where a loop repeats it."""

    kind: str
    first: Use
    second: Use

    @property
    def sites(self) -> tuple[Place, Place] | None:
        """The two lines of one function of the user's from which both uses come, None where it is one line."""
        return parting(self.first.calls, self.second.calls)


def reuses(uses: Sequence[Use], varying: Iterable[frozenset[int]]) -> Iterator[Reuse]:
    """What is used more than once, each pair of places once. `varying`: the loops in which each use's key varies."""
    told: set[tuple[str, str, str]] = set()
    seen: dict[int, list[Use]] = {}
    for use, loops in zip(uses, varying, strict=True):
        found = None
        if any(number not in loops and trips != 1 for number, trips in use.loops):
            found = Reuse(EVERY_ITERATION, use, use)
        else:
            earlier = next((e for e in seen.get(use.key, ()) if not _exclusive(e, use)), None)
            if earlier is not None:
                found = Reuse(SEVERAL_ELEMENTS if earlier.order == use.order else TWICE, earlier, use)
        seen.setdefault(use.key, []).append(use)
        if found is not None:
            calls = f" {found.sites}" if found.first.place == found.second.place else ""
            key = (found.kind, f"{found.first.place} {found.first.use}",
                   f"{found.second.place} {found.second.use}{calls}")
            if key not in told:
                told.add(key)
                yield found


def _exclusive(one: Use, other: Use) -> bool:
    """Whether the two lie in different branches of one `cond`: only one of them ever runs."""
    taken = dict(one.branches)
    return any(taken.get(number, branch) != branch for number, branch in other.branches)
