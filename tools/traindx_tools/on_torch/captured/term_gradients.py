"""How hard each term of the loss pulls on everything that is trained, asked of a copy of the step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from traindx_tools.on_torch.captured.call import NotKept
from traindx_tools.on_torch.captured.step import Ran, StepCopy
from traindx_tools.on_torch.loss_terms.expression import LossTrace, Term

MOST_TERMS = 8


@dataclass(frozen=True)
class TermPull:
    """One term at one step: its value, its factor in the loss, and the norm of its gradient, factor included."""

    value: float
    factor: float
    norm: float
    shared: float
    """The norm over those parameters alone that other terms reach as well."""

    @property
    def weighted(self) -> float:
        """Its part of the loss."""
        return self.factor * self.value


def term_gradients(step: StepCopy, terms: Sequence[Term], slots: Mapping[str, int | None]) -> dict[str, TermPull]:
    """By name; {} for a loss of one term. `slots`: the number of each term among what the step made, None for those
    made inside of a model, which are looked for again while the copy runs."""
    able = [t for t in terms if t.has_graph and not t.constant and t.factor != 0]
    if len(able) < 2 or len(able) > MOST_TERMS:
        return {}
    if all(slots.get(t.name) is not None for t in able):
        ran = step.run()
        tensors = {t.name: ran.values[slots[t.name] or 0] for t in able}
    else:
        trace = LossTrace()
        ran = step.run(around=trace)
        again = {t.name: t.tensor for t in trace.terms(ran.loss)}
        tensors = {t.name: again.get(t.name) for t in able}
    return _pulls(ran, able, tensors)


def _pulls(ran: Ran, able: Sequence[Term], tensors: Mapping[str, torch.Tensor | None]) -> dict[str, TermPull]:
    gradients: dict[str, list[torch.Tensor | None]] = {}
    for term in able:
        tensor = tensors[term.name]
        if tensor is None or tensor.numel() != 1 or not torch.equal(tensor.detach().cpu(), term.tensor.detach().cpu()):
            raise NotKept("a term of its loss was not made again")
        gradients[term.name] = ran.gradients(tensor, keep=True)
    count = len(ran.leaves)
    shared = {i for i in range(count) if sum(g[i] is not None for g in gradients.values()) >= 2}
    return {t.name: TermPull(float(t.tensor.detach()), t.factor, abs(t.factor) * _norm(gradients[t.name], range(count)),
                             abs(t.factor) * _norm(gradients[t.name], shared)) for t in able}


def _norm(gradients: Sequence[torch.Tensor | None], of: range | set[int]) -> float:
    squares = [float(g.double().square().sum()) for i in of for g in [gradients[i]] if g is not None]
    return math.sqrt(sum(squares))
