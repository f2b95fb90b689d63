"""How hard each term pulls on the shared parameters, and whether two terms pull against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch

from traindx_tools.on_torch.loss_terms.expression import Term


@dataclass(frozen=True)
class Pull:
    """Gradient norms by term (factor included) over parameters that at least two terms reach, and cosines by pair."""

    norms: dict[str, float]
    cosines: dict[tuple[str, str], float]


def pull_of(terms: Sequence[Term], parameters: Sequence[torch.nn.Parameter]) -> Pull:
    """One extra backward pass a term, with the graph kept: for sampled steps only. Changes no `.grad`."""
    wanted = [p for p in parameters if p.requires_grad]
    with_graph = [t for t in terms if t.has_graph]
    gradients = {t.name: torch.autograd.grad(t.tensor.sum() * t.factor, wanted, retain_graph=True, allow_unused=True)
                 for t in with_graph}
    shared = [i for i in range(len(wanted)) if sum(g[i] is not None for g in gradients.values()) >= 2]
    flat = {name: _flat(g, shared, wanted) for name, g in gradients.items()}
    norms = {name: float(v.norm()) for name, v in flat.items()}
    cosines = {(a, b): float(flat[a] @ flat[b]) / (norms[a] * norms[b])
               for a, b in combinations(flat, 2) if norms[a] > 0 and norms[b] > 0}
    return Pull(norms, cosines)


def _flat(gradients: Sequence[torch.Tensor | None], shared: Sequence[int],
          parameters: Sequence[torch.nn.Parameter]) -> torch.Tensor:
    parts = []
    for i in shared:
        gradient = gradients[i]
        parts.append(torch.zeros(parameters[i].numel(), device=parameters[i].device) if gradient is None
                     else gradient.detach().float().flatten())
    return torch.cat(parts) if parts else torch.zeros(1)
