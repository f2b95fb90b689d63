"""Which input of a jaxpr a leaf of a marked gradient belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.tracing import Traced, type_of


def parameter_of(name: str, aval: Any, traced: Traced) -> int | None:
    """The input that a leaf of a gradient belongs to: of its type, and of its path within whatever holds it."""
    path = name[len(name.split("[")[0].split(".")[0]):]
    same = [i for i, v in enumerate(traced.jaxpr.jaxpr.invars) if type_of(v.aval) == type_of(aval)]
    exact = [i for i in same if traced.inputs[i] == name]
    ending = [i for i in same if path and traced.inputs[i].endswith(path)]
    first = [i for i in ending if not any(w in traced.inputs[i] for w in ("opt", ".mu", ".nu", "ema", "target"))]
    chosen = exact or (ending if len(ending) == 1 else first)
    return chosen[0] if len(chosen) == 1 else None


def types_of(jaxpr: Any, labels: Sequence[str]) -> list[Any]:
    """The types of marked gradients, by their labels."""
    found: dict[str, Any] = {}
    waiting = [jaxpr]
    while waiting:
        for eqn in waiting.pop().jaxpr.eqns:
            if eqn.primitive.name == "name":
                found.setdefault(str(eqn.params["name"]), eqn.outvars[0].aval)
            waiting += [body for _, body in internals.inner_jaxprs(eqn)]
    return [found[label] for label in labels]
