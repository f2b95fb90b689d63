"""What the gradient rules judge: norms by module over the measured steps of one optimizer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Location

Floats = NDArray[np.float64]

SOURCE = "torch probe: gradients"

_BLOCK = re.compile(r"^(.*?)\.?(\d+)(?:\.|$)")


@dataclass(frozen=True, eq=False)
class GradientCourse:
    """T measured steps of M modules that hold weights of two or more dimensions.

    Biases are left out: before a normalisation, or of attention keys, their gradient is zero by construction.
    """

    modules: tuple[str, ...]
    steps: tuple[int, ...]
    norms: Floats
    """(T, M): 2-norm of the gradient; nan where there was none."""
    weights: Floats
    """(T, M): 2-norm of the weights."""
    total: Floats
    """(T,): 2-norm of all gradients as the optimizer saw them."""
    unclipped: Floats
    """(T,): the same right after backward; nan where not measured."""
    scales: Floats
    """(T,): what a GradScaler multiplied the loss by; 1 without one."""
    rates: Floats
    """(T,): largest learning rate of the groups."""
    adaptive: bool
    """Whether the optimizer divides by the size of the gradient (Adam and its kin)."""
    loss: Floats
    """(T,): the loss; nan where unknown."""
    rank: int = 0
    tables: frozenset[str] = frozenset()
    """Modules that are lookups: only the rows that were looked up have a gradient."""

    def at(self, module: str | None, first: int = 0, last: int = -1) -> Location:
        """The place: a module and the steps from measured step `first` to `last`."""
        return Location(module=module, step=float(self.steps[first]), end_step=float(self.steps[last]), rank=self.rank)

    @cached_property
    def typical(self) -> Floats:
        """(M,): median norm by module over the second half; nan where it never had a gradient."""
        return medians(self.norms[len(self.norms) // 2:])

    @cached_property
    def blocks(self) -> tuple[tuple[str, Floats], ...]:
        """Repeated blocks in depth order with the course of their norms, (T,) each; empty below four blocks."""
        groups: dict[str, dict[int, list[int]]] = {}
        for i, name in enumerate(self.modules):
            if m := _BLOCK.match(name):
                groups.setdefault(m[1], {}).setdefault(int(m[2]), []).append(i)
        if not groups:
            return ()
        prefix, members = max(groups.items(), key=lambda item: len(item[1]))
        if len(members) < 4:
            return ()
        return tuple((f"{prefix}.{k}".lstrip("."), np.sqrt(np.nansum(self.norms[:, idx] ** 2, axis=1)))
                     for k, idx in sorted(members.items()))


def medians(values: Floats) -> Floats:
    """Median of each column, nan for a column without values; silent."""
    out = np.full(values.shape[1], np.nan)
    for j in range(values.shape[1]):
        known = values[:, j][~np.isnan(values[:, j])]
        if len(known):
            out[j] = np.median(known)
    return out


def short(value: float) -> str:
    """A number for a sentence: three digits."""
    return f"{value:.3g}"
