"""Moments of an optimizer whose shape is not that of their weight, by name, and how the two were found to belong
together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from traindx_tools.on_weights.checkpoint import Checkpoint, OptimizerState
from traindx_tools.on_weights.state_tree import leaves
from traindx_tools.on_weights.tensor import Tensor

_AGREE = 0.5
"""Share of the moments that fit the weight at their place, at least: else the order is another one."""
_MOMENT = re.compile(r"^(?:mu|nu|trace|momentum|velocity|exp_avg|exp_avg_sq|square_avg|sum_of_squares|m|v)$")
_OPTIMIZER = re.compile(r"(?i)^(?:\w*_)?opt(?:im\w*|_\w+|_?state\w*)?$")


@dataclass(frozen=True)
class Misfit:
    """A weight and moments that are said to be its own."""

    name: str
    moment: tuple[int, ...]
    weight: tuple[int, ...]
    parameter: str
    """What the optimizer calls it."""
    how: str

    def said(self) -> str:
        return (f"optimizer moments of {self.name} ({self.parameter}) are {list(self.moment)}, the weight is "
                f"{list(self.weight)} (mapped {self.how})")


def by_number(optimizer: OptimizerState, moments: Mapping[Any, Tensor], weights: Sequence[Tensor]) -> list[Misfit]:
    """torch numbers parameters: names that it keeps, else the order of the weights, else what alone is left over."""
    kept = {k: n for g in optimizer.groups for k, n in zip(g.get("params") or (), g.get("param_names") or (),
                                                           strict=False)}
    by_name = {w.name: w for w in weights}
    if kept and all(k in kept for k in moments):
        pairs = [(k, m, by_name[str(kept[k])]) for k, m in moments.items() if str(kept[k]) in by_name]
        return _misfits(pairs, "by the names that it keeps")
    if len(optimizer.groups) == 1:
        aligned = _aligned(list(optimizer.groups[0].get("params") or ()), moments, weights)
        fitting = sum(m.shape == w.shape for _, m, w in aligned)
        if fitting >= max(1, _AGREE * len(moments)):
            return _misfits(aligned, f"by order: {fitting} of {len(moments)} fit their place")
    return _left_over(moments, weights)


def _misfits(pairs: Sequence[tuple[Any, Tensor, Tensor]], how: str) -> list[Misfit]:
    return [Misfit(w.name, m.shape, w.shape, f"parameter {k}", how) for k, m, w in pairs if m.shape != w.shape]


def _aligned(keys: Sequence[Any], moments: Mapping[Any, Tensor], weights: Sequence[Tensor]
             ) -> list[tuple[Any, Tensor, Tensor]]:
    """Parameters and weights at the same place; where their numbers differ, between stretches of equal shapes."""
    if len(keys) == len(weights):
        return [(k, moments[k], w) for k, w in zip(keys, weights, strict=True) if k in moments]
    known = [k for k in keys if k in moments]
    matcher = SequenceMatcher(None, [moments[k].shape for k in known], [w.shape for w in weights], autojunk=False)
    return [(known[i], moments[known[i]], weights[j]) for tag, a, b, c, d in matcher.get_opcodes()
            if tag == "equal" or (tag == "replace" and b - a == d - c)
            for i, j in zip(range(a, b), range(c, d), strict=True)]


def _left_over(moments: Mapping[Any, Tensor], weights: Sequence[Tensor]) -> list[Misfit]:
    """The one moment of so many axes that fits no weight, and the one weight of so many axes that no moment fits."""
    spare = Counter(w.shape for w in weights) - Counter(m.shape for m in moments.values())
    strange = {k: m for k, m in moments.items() if m.shape not in {w.shape for w in weights}}
    found = []
    for key, moment in strange.items():
        ones = [m for m in strange.values() if len(m.shape) == len(moment.shape)]
        others = [w for w in weights if w.shape in spare and len(w.shape) == len(moment.shape)]
        if len(ones) == len(others) == 1:
            found.append(Misfit(others[0].name, moment.shape, others[0].shape, f"parameter {key}",
                                "by shape: nothing else is left over"))
    return found


def by_path(checkpoint: Checkpoint) -> tuple[list[Misfit], int]:
    """Moments that lie in a tree under the path of their weight, as optax keeps them, and how many were compared.

    Optimizers that factor or project moments keep others for most weights: then none is told.
    """
    found = leaves(checkpoint)
    moments = dict(_moments(found))
    weights = {k: t for k, t in found.items() if not any(_OPTIMIZER.match(p) for p in k.split(".")[:-1])}
    by_end: dict[str, list[str]] = {}
    for key in weights:
        parts = key.split(".")
        for depth in range(min(3, len(parts))):
            by_end.setdefault(".".join(parts[depth:]), []).append(key)
    pairs = [(k, found[k], weights[w]) for k, path in moments.items() if (w := _weight(path, by_end)) is not None]
    wrong = [Misfit(w.name, m.shape, w.shape, k, "by path") for k, m, w in pairs if m.shape != w.shape]
    return (wrong if len(wrong) <= len(pairs) / 2 else []), len(pairs)


def _moments(found: Mapping[str, Tensor]) -> Iterator[tuple[str, str]]:
    """Keys of moments and what stands behind the moment's name."""
    for key in found:
        parts = key.split(".")
        at = next((i for i, p in enumerate(parts[:-1]) if _OPTIMIZER.match(p)), None)
        name = next((i for i in range(at + 1, len(parts) - 1) if _MOMENT.match(parts[i])), None) if (
            at is not None) else None
        if name is not None:
            yield key, ".".join(parts[name + 1:])


def _weight(path: str, by_end: Mapping[str, list[str]]) -> str | None:
    """The one weight whose path ends with this one, or with this one without its beginning."""
    while path:
        if len(ends := by_end.get(path, [])) == 1:
            return ends[0]
        if ends:
            return None
        path = path.partition(".")[2]
    return None
