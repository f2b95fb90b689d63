"""The ranks of one job held against each other: which parameters and gradients are equal on all of them, and when.

Pure judgement over records. Ranks of one job are those that share its address and the group over which DDP reduces.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from traindx_tools.on_ranks.records import Digest, Replica, Windows

MOST_RANKS = 32
"""Ranks of one job that are compared, spread over all of them."""
GRADIENT, WEIGHT, DRIFT = 0.01, 1e-6, 1e-4
"""Relative difference from which two count as different. All-reduce gives every rank the same bits; a hundredth leaves
room for gradients that are reduced in 8 or 16 bits. Weights that take the same steps have the same bits too; where only
weights differ, rounding is left a thousand times the room."""


@dataclass(frozen=True)
class Job:
    """Replicas of one model, ascending by rank; at least two."""

    replicas: tuple[Replica, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Parameters that every rank has under this name and shape."""
        others = [set(r.names) for r in self.replicas[1:]]
        return tuple(n for n in self.replicas[0].names if all(n in o for o in others))

    @property
    def world(self) -> int:
        """Processes of the job, also those that were not compared."""
        return self.replicas[0].world

    @cached_property
    def windows(self) -> Windows:
        """Of the lowest rank: the program is the same on all."""
        return self.replicas[0].windows

    @property
    def model_parallel(self) -> bool:
        """Whether some rank holds a part of a model: collectives in forward passes, stages of a pipeline."""
        return any(r.windows.exchanges or r.windows.apart for r in self.replicas)

    @property
    def hooked(self) -> bool:
        """Whether gradients are reduced in a way of the program's own."""
        return any(r.windows.hook for r in self.replicas)

    def in_ddp(self, name: str) -> bool:
        """Whether every rank has it in a bucket."""
        return all(name in r.ddp for r in self.replicas)

    def constant(self, name: str) -> bool:
        """Whether it began with one value everywhere, which says nothing of a common start."""
        return all(name in r.constant for r in self.replicas)

    def gradients(self, name: str) -> dict[int, float]:
        """Largest relative difference between ranks by step, where some rank has a gradient that is not zero."""
        return self._gradients[name]

    def weights(self, name: str) -> dict[int, float]:
        """Largest relative difference between ranks by the number of steps before."""
        return self._weights[name]

    @cached_property
    def _gradients(self) -> dict[str, dict[int, float]]:
        return {n: _apart([r.gradients for r in self.replicas], n, zero=False) for n in self.names}

    @cached_property
    def _weights(self) -> dict[str, dict[int, float]]:
        return {n: _apart([r.weights for r in self.replicas], n, zero=True) for n in self.names}

    @cached_property
    def averaged_at(self) -> int | None:
        """A step before which something other than the optimizer had made the ranks equal again; None for none."""
        steps = set.intersection(*(set(r.written) for r in self.replicas))
        for step in sorted(steps):
            values = [r.written[step] for r in self.replicas]
            if all(_near(v, values[0]) for v in values[1:]):
                return step
        return None

    def equal_again(self, name: str) -> int | None:
        """The first look at which it is equal on all ranks after it was not."""
        parted = False
        for step, difference in sorted(self.weights(name).items()):
            if parted and difference <= WEIGHT:
                return step
            parted = parted or difference > WEIGHT
        return None


def jobs(replicas: Iterable[Replica]) -> list[Job]:
    """The replicas of each job. Where one rank told twice (two programs, one after the other) they are left out."""
    together: dict[tuple[object, ...], list[Replica]] = defaultdict(list)
    for r in replicas:
        together[r.job, r.world, r.group].append(r)
    found = []
    for several in together.values():
        several.sort(key=lambda r: r.rank)
        if len(several) > 1 and len({r.rank for r in several}) == len(several):
            stride = -(-len(several) // MOST_RANKS)
            found.append(Job(tuple(several[::stride])))
    return found


def _apart(told: Sequence[Mapping[int, Mapping[str, Digest]]], name: str, *, zero: bool) -> dict[int, float]:
    found = {}
    for step in sorted(set.intersection(*(set(t) for t in told))):
        values = [t[step].get(name) for t in told]
        held = [v for v in values if v is not None]
        if len(held) == len(values) and (zero or any(v[0] > 0 for v in held)):
            found[step] = max(difference(held[0], v) for v in held[1:])
    return found


def difference(a: Digest, b: Digest) -> float:
    """Largest difference of the three numbers over the larger norm; 0 for two zeros."""
    scale = max(a[0], b[0])
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) / scale if scale > 0 else 0.0


def _near(a: Sequence[float], b: Sequence[float]) -> bool:
    scale = max(map(abs, (*a, *b)), default=0.0)
    return len(a) == len(b) and all(abs(x - y) <= WEIGHT * scale for x, y in zip(a, b, strict=True))


def plain(name: str) -> str:
    """The path of a parameter without its shape."""
    return name.partition(" ")[0]


def module_of(name: str) -> str:
    """The path of the module that holds it; its own where it lies in the outermost."""
    return plain(name).rpartition(".")[0] or plain(name)


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first few."""
    return ", ".join(map(plain, names[:most])) + (", ..." if len(names) > most else "")
