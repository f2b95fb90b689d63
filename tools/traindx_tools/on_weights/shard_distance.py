"""A shard whose tensors moved otherwise than the same kinds of tensors in the other shards: it is of another step.

Rates that differ by depth drift from block to block; a shard of another step makes one jump, at its edge and in every
kind of tensor. So the distance of files is held against the steps inside of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.tensor import Tensor

_JUMP, _TIMES, _KINDS, _USUAL = 1.0, 4.0, 3, 0.9
"""Octaves between two files at least; times nine tenths of the steps inside of files; kinds of tensors that show it."""


@dataclass(frozen=True)
class Uneven:
    """One shard file against the others."""

    file: str
    names: tuple[str, ...]
    factor: float
    """Times as far as the others."""
    kinds: int


def uneven(seen: Seen, changes: Mapping[str, float], tensors: Mapping[str, Tensor]) -> Uneven | None:
    """The file that moved otherwise. `tensors`: which file each name lies in, in the first or the second checkpoint."""
    inside: list[float] = []
    residuals: dict[str, dict[str, float]] = {}
    kinds = 0
    for stack in seen.stacks_from(3):
        known = [s.name for s in stack.members if s.name in tensors and 0 < changes.get(s.name, 0.0) < math.inf]
        if not stack.members[0].tensor.matrix or len(known) < 3 or len({tensors[n].file for n in known}) < 2:
            continue
        kinds += 1
        logs = {n: math.log2(changes[n]) for n in known}
        middle = float(np.median(list(logs.values())))
        for a, b in pairwise(known):
            if tensors[a].file == tensors[b].file:
                inside.append(abs(logs[b] - logs[a]))
        for name in known:
            residuals.setdefault(tensors[name].file, {})[name] = logs[name] - middle
    if kinds < _KINDS or len(inside) < _KINDS or len(residuals) < 2:
        return None
    return _apart(residuals, max(_JUMP, _TIMES * float(np.quantile(inside, _USUAL))), kinds)


def _apart(residuals: Mapping[str, Mapping[str, float]], least: float, kinds: int) -> Uneven | None:
    """The one file of which every tensor is off the others; of two, the one with fewer tensors."""
    found = []
    for file, own in residuals.items():
        rest = [r for f, others in residuals.items() if f != file for r in others.values()]
        gap = max(min(own.values()) - max(rest), min(rest) - max(own.values()))
        if gap > least - 1e-9 and len(own) >= _KINDS:
            factor = 2.0 ** (float(np.median(list(own.values()))) - float(np.median(rest)))
            found.append(Uneven(file, tuple(own), factor, kinds))
    return min(found, key=lambda u: len(u.names), default=None)
