"""What measured norms of gradients say beside the jaxpr: parameters that are cut off, or reached in one branch only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.gradient import BRANCH, CUT, blocked_inputs, stopped_on_purpose
from traindx_tools.on_jax.paths.reach import is_float, reach
from traindx_tools.on_jax.rules import j301_no_gradient_path, j302_gradient_in_one_branch
from traindx_tools.on_jax.tracing import Traced

FEWEST, FEWEST_LOOKS = 10, 3
"""Calls between the first and the last look, and looks, from which a gradient of zero counts."""
MOST_LEAVES = 400


@dataclass(frozen=True, eq=False)
class Measured:
    """Norms of the gradients of some inputs of a function, and of these inputs themselves.

    `names`, `inputs`: of each parameter, its position among the jaxpr's inputs. `outputs`: positions of outputs that
    are gradients. `grads`, `values`: float arrays, by look and parameter. `calls`: from the first look to the last.
    """

    traced: Traced
    names: tuple[str, ...]
    inputs: tuple[int, ...]
    outputs: frozenset[int]
    grads: Any
    values: Any
    calls: int


def judged(told: Measured) -> Iterator[Finding]:
    """J301 for parameters that never had a gradient nor changed, J302 for those that had none in some calls."""
    grads, values = told.grads, told.values
    never = (grads == 0).all(axis=0) & (values[0] == values[-1])
    sometimes = (grads == 0).any(axis=0) & (grads > 0).any(axis=0)
    if not (grads > 0).any():
        return
    traced = told.traced
    losses = [i for i, v in enumerate(traced.jaxpr.jaxpr.outvars)
              if i not in told.outputs and not internals.is_literal(v) and is_float(v.aval) and not v.aval.shape]
    purpose = stopped_on_purpose(traced.jaxpr)
    zero = [i for k, i in enumerate(told.inputs) if (never[k] or sometimes[k]) and i not in purpose]
    position = {name: k for k, name in enumerate(told.names)}
    norms = dict(zip(told.names[:MOST_LEAVES], map(float, grads[-1]), strict=False))
    for blocked in blocked_inputs(traced, reach(traced.jaxpr), zero, losses):
        wanted = sometimes if blocked.kind == BRANCH else never
        names = tuple(n for n in blocked.names if wanted[position[n]])
        if not names or (blocked.kind == CUT and blocked.cut is None):
            continue
        found = replace(blocked, names=names, norms=norms)
        if blocked.kind == BRANCH:
            zeros = int((grads[:, [position[n] for n in names]] == 0).all(axis=1).sum())
            yield from j302_gradient_in_one_branch.check(found, (zeros, len(grads)))
        elif blocked.kind == CUT:
            yield from j301_no_gradient_path.check(replace(found, unchanged_calls=told.calls))
