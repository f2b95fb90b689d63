"""Which weight each parameter of an optimizer's state is: by names it keeps, else by order and shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from traindx_tools.on_weights.checkpoint import OptimizerState
from traindx_tools.on_weights.tensor import Tensor

_MOMENTS = ("exp_avg", "momentum_buffer", "exp_avg_sq", "square_avg", "sum")


def shaped(state: Any) -> Tensor | None:
    """A moment: the first tensor in the state of a parameter that has its shape."""
    if not isinstance(state, Mapping):
        return None
    return next((t for t in (state.get(n) for n in _MOMENTS) if isinstance(t, Tensor)), None)


def names_of(optimizer: OptimizerState, weights: Sequence[Tensor]) -> Mapping[Any, str]:
    """Names of the parameters by their keys in the state; {} where they cannot be told.

    Within a group parameters keep the model's order. Of groups split by kind (decayed or not) each parameter is the
    next weight of its shape that is left. All parameters with moments must find a weight.
    """
    named: dict[Any, str] = {}
    for group in optimizer.groups:
        told, keys = group.get("param_names"), group.get("params") or ()
        if isinstance(told, (list, tuple)) and len(told) == len(keys):
            named |= dict(zip(keys, map(str, told), strict=True))
    keys = [k for g in optimizer.groups for k in (g.get("params") or ())]
    if named and len(named) == len(keys):
        return named
    moments = {k: shaped(optimizer.state.get(k)) for k in keys}
    if len(optimizer.groups) == 1 and len(keys) == len(weights):
        pairs = list(zip(keys, weights, strict=True))
        fits = all(m is None or m.shape == w.shape for (k, w), m in zip(pairs, moments.values(), strict=True))
        return {k: w.name for k, w in pairs} if fits else {}
    return _by_shape(optimizer, moments, weights)


def _by_shape(optimizer: OptimizerState, moments: Mapping[Any, Tensor | None], weights: Sequence[Tensor]
              ) -> Mapping[Any, str]:
    """Each group in the order of the weights; {} where one finds none, or a weight of its shape could be elsewhere."""
    found: dict[Any, str] = {}
    left = list(weights)
    for group in optimizer.groups:
        at = 0
        for key in group.get("params") or ():
            moment = moments.get(key)
            if moment is None:
                continue
            place = next((i for i in range(at, len(left)) if left[i].shape == moment.shape), None)
            if place is None:
                return {}
            found[key] = left.pop(place).name
            at = place
    sizes = [sum(1 for w in weights if w.shape == t.shape) == sum(1 for m in moments.values()
                                                                 if m is not None and m.shape == t.shape)
             for t in moments.values() if t is not None]
    return found if all(sizes) else {}
