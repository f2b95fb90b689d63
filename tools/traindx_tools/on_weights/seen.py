"""What the rules are asked over: the tensors of one part of a checkpoint, measured, and another file beside it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Location
from traindx_tools.on_weights.checkpoint import Checkpoint, Part
from traindx_tools.on_weights.movement import movement
from traindx_tools.on_weights.parameter_names import shaped
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tensor import Tensor

if TYPE_CHECKING:
    from traindx_tools.on_weights.moments import Moments
    from traindx_tools.on_weights.weighted_sums import WeightedSums

FEWEST_SIBLINGS = 4
"""Members of a stack below which none can be called the odd one."""
_FEW = 8
"""Values up to which a tensor of two distinct ones is no mask."""
_NUMBER = re.compile(r"\d+")
_LAST = re.compile(r"(.*?)([./]?)([^./]*)", re.DOTALL)
NORM_SUFFIXES = {"running_var": "running_mean", "moving_variance": "moving_mean", "var": "mean"}
"""How the running variance is called in torch, keras and flax, and the mean beside it."""
_KEPT = frozenset({*NORM_SUFFIXES, *NORM_SUFFIXES.values()})


@dataclass(frozen=True)
class Stack:
    """Tensors of one name and shape that differ in one number alone: the same weight of each block."""

    pattern: str
    indexes: tuple[int, ...]
    members: tuple[Stats, ...]

    def __len__(self) -> int:
        return len(self.members)


Groups = Sequence[tuple[str, Sequence[tuple[int, Stats]]]]
"""Tensors that differ in one number of their names: the name without it, and each with its number."""


@dataclass(frozen=True, eq=False)
class Seen:
    """One part of a checkpoint and the statistics of its tensors, by name."""

    checkpoint: Checkpoint
    part: Part
    stats: Mapping[str, Stats]
    config: Mapping[str, Any] = field(default_factory=dict)
    other: Seen | None = None
    measured: Mapping[int, Stats] = field(default_factory=dict)
    """Statistics of the tensors of all parts and files, by `id`."""

    @property
    def path(self) -> str:
        return self.checkpoint.path

    @property
    def main(self) -> bool:
        """Whether this is the part that holds the model: what concerns the file is told there, once."""
        return self.part is self.checkpoint.weights

    def where(self, name: str) -> Location:
        """The place of a tensor."""
        tensor = self.part.tensors.get(name)
        return Location(file=tensor.file if tensor else self.path, module=tensor.key or name if tensor else name)

    @cached_property
    def floats(self) -> tuple[Stats, ...]:
        """The tensors of real numbers, in the file's order."""
        return tuple(s for n, t in self.part.tensors.items() if t.floating and (s := self.stats.get(n)) is not None)

    @cached_property
    def weights(self) -> tuple[Stats, ...]:
        """Matrices and kernels that are no tables: what an initialiser drew and training moved."""
        return tuple(s for s in self.floats if s.tensor.matrix and not self.is_table(s))

    @cached_property
    def stacks(self) -> tuple[Stack, ...]:
        """The stacks with at least `FEWEST_SIBLINGS` members; each tensor is in the largest that it fits."""
        return self.stacks_from(FEWEST_SIBLINGS)

    def stacks_from(self, fewest: int) -> tuple[Stack, ...]:
        """The same with at least `fewest` members."""
        if fewest not in self._stacks:
            self._stacks[fewest] = _stacks(self.alike, fewest)
        return self._stacks[fewest]

    @cached_property
    def alike(self) -> Groups:
        """All groups of two and more that differ in one number of their names; a tensor may be in several."""
        return _grouped(self.floats)

    @cached_property
    def _stacks(self) -> dict[int, tuple[Stack, ...]]:
        return {}

    @cached_property
    def stack_of(self) -> Mapping[str, Stack]:
        """The stack of each tensor that is in one."""
        return {s.name: stack for stack in self.stacks for s in stack.members}

    @cached_property
    def moments(self) -> tuple[Moments, ...]:
        """The moments of every optimizer in the file, measured once."""
        from traindx_tools.on_weights.moments import measured_moments

        return tuple(measured_moments(self.checkpoint))

    @cached_property
    def weighted_sums(self) -> tuple[WeightedSums, ...]:
        """Codes that are a moving average, with their counts and sums."""
        from traindx_tools.on_weights.weighted_sums import weighted_sums

        return tuple(weighted_sums(self.floats))

    @cached_property
    def changes(self) -> Mapping[str, float]:
        """The relative change of each floating tensor up to the other file, by its name here; 0: not a bit."""
        return movement(self.part.tensors, self.other.part.tensors) if self.other is not None else {}

    def is_table(self, stats: Stats) -> bool:
        """Whether it is no weight: a mask of two values, running statistics, or what `W113` recomputes.

        A mask is known by its values: a learnt `mask_token` has its name alone.
        """
        last = stats.name.replace("/", ".").rpartition(".")[2]
        if last in _KEPT or last.startswith("inv_freq") or (last.startswith("mask") and stats.constant):
            return True
        if stats.size <= _FEW:  # two values are always the smallest and the largest: the bias of two classes is no mask
            return False
        ends = (stats.sample == stats.low) | (stats.sample == stats.high)
        return stats.low != stats.high and bool(ends.all())

    @cached_property
    def parameters(self) -> tuple[Tensor, ...]:
        """What may be parameters, each storage once: no tables, but for those that the optimizers keep moments of.

        A moment is of the shape of its parameter. Where more moments have a shape than other tensors have it, what is
        called as a table is trained: a learnt `mean`, a learnt table of rotary frequencies.
        """
        once: dict[object, Tensor] = {}
        for name, tensor in self.part.tensors.items():
            if tensor.floating:
                once.setdefault(tensor.storage or name, tensor)
        tables = {s.name for s in self.floats if self.is_table(s)}
        spare = Counter(t.shape for o in self.checkpoint.optimizers for k in o.state
                        if (t := shaped(o.state[k])) is not None)
        spare.subtract(t.shape for t in once.values() if t.name not in tables)
        kept = []
        for tensor in once.values():
            if tensor.name in tables:
                if spare[tensor.shape] <= 0:
                    continue
                spare[tensor.shape] -= 1
            kept.append(tensor)
        return tuple(kept)

    def bias_of(self, name: str) -> Stats | None:
        """The bias beside a weight."""
        head, _, last = name.rpartition(".")
        return self.stats.get(f"{head}.{last.replace('weight', 'bias').replace('kernel', 'bias')}".lstrip(".")
                              ) if "weight" in last or "kernel" in last else None

    def normalisations(self) -> Sequence[tuple[str, Stats, Stats]]:
        """(module, mean, variance) of each layer that keeps running statistics."""
        found = []
        for stats in self.floats:
            names = _running(stats.name)
            mean = self.stats.get(names[1]) if names else None
            if names and mean is not None and mean.tensor.shape == stats.tensor.shape:
                found.append((names[0], mean, stats))
        return found


def _running(name: str) -> tuple[str, str] | None:
    """The module of a running variance and the name of its mean; haiku keeps both as debiased averages."""
    if name.endswith("/~/var_ema.average"):
        head = name.removesuffix("/~/var_ema.average")
        return head, f"{head}/~/mean_ema.average"
    value = ".value" if name.endswith(".value") else ""  # flax nnx keeps a variable's value under this name
    head, mark, last = _LAST.fullmatch(name.removesuffix(value)).groups()  # type: ignore[union-attr]
    return (head, f"{head}{mark}{NORM_SUFFIXES[last]}{value}") if last in NORM_SUFFIXES else None


def stacks_of(stats: Sequence[Stats], fewest: int = FEWEST_SIBLINGS) -> tuple[Stack, ...]:
    """Groups tensors by name with one number left out, and by shape."""
    return _stacks(_grouped(stats), fewest)


def _grouped(stats: Sequence[Stats]) -> Groups:
    """All that differ in one number alone, the largest groups first, members by that number."""
    groups: dict[tuple[str, tuple[int, ...]], list[tuple[int, Stats]]] = {}
    for one in stats:
        name, shape = one.name, one.tensor.shape
        for found in _NUMBER.finditer(name):
            key = (f"{name[:found.start()]}*{name[found.end():]}", shape)
            groups.setdefault(key, []).append((int(found[0]), one))
    several = [(pattern, members) for (pattern, _), members in groups.items() if len(members) > 1]
    for _, members in several:
        members.sort(key=itemgetter(0))
    return sorted(several, key=lambda group: (-len(group[1]), group[0]))


def _stacks(groups: Groups, fewest: int) -> tuple[Stack, ...]:
    """Each tensor in the largest group that it fits, of the groups with at least `fewest` members (two or more)."""
    taken: set[int] = set()
    made = []
    for pattern, members in groups:
        if len(members) < fewest:
            break
        own = [m for m in members if id(m[1]) not in taken]
        if len(own) >= fewest:
            taken.update(id(s) for _, s in own)
            made.append(Stack(pattern, tuple(i for i, _ in own), tuple(s for _, s in own)))
    return tuple(made)


def apart(values: NDArray[np.float64], floor: float) -> tuple[NDArray[np.float64], float]:
    """How far each value lies from the median of the six nearest others, and the usual distance (1.4826 MAD).

    Stacks drift from the first block to the last; the neighbours carry the drift. `floor`: the least spread that is
    taken for usual, in the unit of the values.
    """
    n, own = len(values), np.arange(len(values))[:, None]
    first = np.clip(own - 3, 0, max(0, n - 7))
    window = first + np.arange(min(7, n))
    near = window[window != own].reshape(n, -1)
    distance = values - np.median(values[near], axis=1)
    return distance, max(floor, 1.4826 * float(np.median(np.abs(distance))))


def load_tensor(tensor: Tensor, most: int) -> NDArray[np.float64] | None:
    """The values as float64, or None above `most` bytes."""
    return tensor.load(most).astype(np.float64) if tensor.nbytes <= most else None
