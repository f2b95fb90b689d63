"""`gradient_paths`: which inputs of a loss cannot get a gradient, and which get one in one branch only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.blocked import BRANCH, CUT, DISCONNECTED, Blocked
from traindx_tools.on_jax.paths.ends import RANK, Cut
from traindx_tools.on_jax.paths.norms import gradient_norms
from traindx_tools.on_jax.paths.reach import Reach, is_float, reach
from traindx_tools.on_jax.rules import j301_no_gradient_path, j302_gradient_in_one_branch
from traindx_tools.on_jax.tracing import Traced, trace


def gradient_paths(fn: Callable[..., Any], *args: Any, argnums: int | Sequence[int] = 0,
                   gradients: Any = None, **kwargs: Any) -> list[Finding]:
    """Inputs of `fn` that its first output cannot send a gradient to, as findings (J301, J302).

    `fn` is a loss as it is given to `jax.grad`; only the arguments `argnums` are judged. It is traced, not run: the
    arguments may be types. `gradients`: what `jax.grad(fn)` returned for the first of `argnums`; the norm of each leaf
    then stands beside what the jaxpr says. Raises what tracing the function raises, BadUsage for gradients of another
    structure than that argument's.
    """
    traced = trace(fn, args, kwargs)
    chosen = {argnums} if isinstance(argnums, int) else set(argnums)
    wanted = [i for i, n in enumerate(traced.positions) if n in chosen]
    norms = None if gradients is None else _measured(traced, args, min(chosen), gradients)
    found: list[Finding] = []
    for blocked in blocked_inputs(traced, reach(traced.jaxpr), wanted, [0]):
        blocked = replace(blocked, norms=norms)
        rule = j302_gradient_in_one_branch if blocked.kind == BRANCH else j301_no_gradient_path
        found += rule.check(blocked)
    return found


def _measured(traced: Traced, args: Sequence[Any], position: int, gradients: Any) -> dict[str, float]:
    import jax

    expected, got = (str(jax.tree_util.tree_structure(t)) for t in (args[position], gradients))
    if got != expected:
        raise BadUsage(f"the gradients must have the structure of argument {position}, {expected[:120]}: got "
                       f"{got[:120]}")
    names = [n for n, p in zip(traced.inputs, traced.positions, strict=False) if p == position]
    return dict(zip(names, gradient_norms(gradients).values(), strict=False))


def stopped_on_purpose(jaxpr: Any) -> set[int]:
    """Inputs to which `stop_gradient` is applied as they are: parameters that are frozen on purpose."""
    found: set[int] = set()
    _stopped(jaxpr, {v: i for i, v in enumerate(jaxpr.jaxpr.invars)}, found)
    return found


def _stopped(jaxpr: Any, inputs: Mapping[Any, int], found: set[int]) -> None:
    for eqn in jaxpr.jaxpr.eqns:
        given = [None if internals.is_literal(a) else inputs.get(a) for a in eqn.invars]
        if eqn.primitive.name == "stop_gradient":
            found.update(i for i in given if i is not None)
        body = internals.called(eqn)
        if body is not None:
            _stopped(body, {v: i for v, i in zip(body.jaxpr.invars, given, strict=True) if i is not None}, found)


def blocked_inputs(traced: Traced, found: Reach, inputs: Sequence[int], outputs: Sequence[int]) -> list[Blocked]:
    """The inputs among these to which none of these outputs sends a gradient, together where one cut comes first."""
    told = [found.outputs[o] for o in outputs]
    groups: dict[tuple[str, Cut | None], tuple[list[str], dict[Cut, None]]] = {}
    for i in inputs:
        bit = 1 << i
        if not is_float(traced.jaxpr.jaxpr.invars[i].aval) or any(t.sure & bit for t in told):
            continue
        kind = BRANCH if any(t.smooth & bit for t in told) else CUT if any(t.any & bit for t in told) else DISCONNECTED
        cuts = found.cuts(bit, outputs) if kind != DISCONNECTED else ()
        names, all_cuts = groups.setdefault((kind, cuts[0] if cuts else None), ([], {}))
        names.append(traced.inputs[i])
        all_cuts.update(dict.fromkeys(cuts))
    return [Blocked(kind, tuple(names), tuple(sorted(cuts, key=lambda c: RANK[c.role])), traced.name)
            for (kind, _), (names, cuts) in groups.items()]
