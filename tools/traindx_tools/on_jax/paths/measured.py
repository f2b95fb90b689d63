"""What measured norms of gradients say beside the jaxpr: parameters that are cut off, or reached in one branch only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.blocked import BRANCH, CUT
from traindx_tools.on_jax.paths.gradient import blocked_inputs, stopped_on_purpose
from traindx_tools.on_jax.paths.reach import Reach, is_float, reach
from traindx_tools.on_jax.paths.updates import closed_state
from traindx_tools.on_jax.rules import j301_no_gradient_path, j302_gradient_in_one_branch
from traindx_tools.on_jax.tracing import Traced

FEWEST, FEWEST_LOOKS = 10, 3
"""Calls between the first and the last look, and looks, from which a gradient of zero counts."""
MOST_LEAVES = 400
SMALLEST, SLACK, SHARE = 1e-5, 1e-6, 0.02
"""Of the logarithm of a norm: a change that is more than rounding, rounding, and how far a decay strays from its course
as a share of its change."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Norms of the gradients of some inputs of a function, and of these inputs themselves.

    `names`, `inputs`: of each parameter, its position among the jaxpr's inputs. `outputs`: positions of outputs that
    are gradients. `grads`, `values`: float arrays, by look and parameter. `steps`: the call of each look. `fed`: input
    by output, of state that the function gets back.
    """

    traced: Traced
    names: tuple[str, ...]
    inputs: tuple[int, ...]
    outputs: frozenset[int]
    grads: Any
    values: Any
    steps: tuple[int, ...]
    fed: Mapping[int, int] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """From the first look to the last."""
        return self.steps[-1] - self.steps[0]


def judged(told: Measured) -> Iterator[Finding]:
    """J301 for parameters that never had a gradient nor moved by one, J302 for those that had none in some calls."""
    grads, values, traced = told.grads, told.values, told.traced
    if not (grads > 0).any():
        return
    found = reach(traced.jaxpr)
    losses = [i for i, v in enumerate(traced.jaxpr.jaxpr.outvars)
              if i not in told.outputs and not internals.is_literal(v) and is_float(v.aval) and not v.aval.shape]
    zero, still = (grads == 0).all(axis=0), values[0] == values[-1]
    decays = zero & ~still & (_by_themselves(told, found, losses) | shrinking(values, told.steps, zero))
    never, sometimes = zero & (still | decays), (grads == 0).any(axis=0) & (grads > 0).any(axis=0)
    purpose = stopped_on_purpose(traced.jaxpr)
    wanted_inputs = [i for k, i in enumerate(told.inputs) if (never[k] or sometimes[k]) and i not in purpose]
    position = {name: k for k, name in enumerate(told.names)}
    norms = dict(zip(told.names[:MOST_LEAVES], map(float, grads[-1]), strict=False))
    for blocked in blocked_inputs(traced, found, wanted_inputs, losses):
        wanted = sometimes if blocked.kind == BRANCH else never
        names = tuple(n for n in blocked.names if wanted[position[n]])
        if not names or (blocked.kind == CUT and not blocked.cuts):
            continue
        kept = replace(blocked, names=names, norms=norms)
        if blocked.kind == BRANCH:
            zeros = int((grads[:, [position[n] for n in names]] == 0).all(axis=1).sum())
            yield from j302_gradient_in_one_branch.check(kept, (zeros, len(grads)))
        elif blocked.kind == CUT:
            decaying = tuple(n for n in names if decays[position[n]])
            yield from j301_no_gradient_path.check(replace(kept, unchanged_calls=told.calls, decaying=decaying))


def _by_themselves(told: Measured, found: Reach, losses: Sequence[int]) -> Any:
    """Which parameters the function itself updates from nothing but themselves."""
    trained = 0
    for o in losses:
        trained |= found.outputs[o].smooth
    closed = closed_state(told.traced.jaxpr, told.fed, trained) if told.fed else set()
    return np.array([i in closed for i in told.inputs])


def shrinking(values: Any, steps: Sequence[int], among: Any) -> Any:
    """Which norms, by look and parameter, became smaller as weight decay makes them: bool by parameter.

    Either several of those `among` by one and the same factor at every look, or one by a constant factor a call. The
    average of another network follows neither. Changes below 1e-5 are lost in float32.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.log(np.asarray(values, np.float64) / np.asarray(values[0], np.float64))
    candidates = among & np.isfinite(change).all(axis=0) & (change[-1] < -SMALLEST) & (
        np.diff(change, axis=0) <= SLACK).all(axis=0)
    allowed = SHARE * np.abs(change[-1]) + SLACK
    found = np.zeros(len(candidates), bool)
    if candidates.sum() >= 2:
        usual = np.median(change[:, candidates], axis=1)
        alike = candidates & (np.abs(change - usual[:, None]).max(axis=0) <= allowed)
        found |= alike if alike.sum() >= 2 else False
    if len(steps) >= 4:
        at = (np.asarray(steps) - steps[0]) / max(steps[-1] - steps[0], 1)
        found |= candidates & (np.abs(change - at[:, None] * change[-1]).max(axis=0) <= allowed)
    return found
