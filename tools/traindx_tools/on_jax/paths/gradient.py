"""`gradient_paths`: which inputs of a loss cannot get a gradient, and which get one in one branch only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax.paths.reach import Cut, Reach, is_float, reach
from traindx_tools.on_jax.tracing import Traced, trace

CUT, DISCONNECTED, BRANCH = "cut", "disconnected", "one branch"


@dataclass(frozen=True)
class Blocked:
    """Inputs that get no gradient for one reason: by their names. `cut`: where every way ends."""

    kind: str
    names: tuple[str, ...]
    cut: Cut | None
    function: str
    unchanged_calls: int | None = None
    """For how many calls of a running program they were seen not to change."""
    norms: Mapping[str, float] | None = None


def gradient_paths(fn: Callable[..., Any], *args: Any, argnums: int | Sequence[int] = 0,
                   **kwargs: Any) -> list[Finding]:
    """Inputs of `fn` that its first output cannot send a gradient to, as findings (J301, J302).

    `fn` is a loss as it is given to `jax.grad`; only the arguments `argnums` are judged. It is traced, not run: the
    arguments may be types. Raises what tracing the function raises.
    """
    from traindx_tools.on_jax.rules import j301_no_gradient_path, j302_gradient_in_one_branch

    traced = trace(fn, args, kwargs)
    chosen = {argnums} if isinstance(argnums, int) else set(argnums)
    wanted = [i for i, n in enumerate(traced.positions) if n in chosen]
    found: list[Finding] = []
    for blocked in blocked_inputs(traced, reach(traced.jaxpr), wanted, [0]):
        rule = j302_gradient_in_one_branch if blocked.kind == BRANCH else j301_no_gradient_path
        found += rule.check(blocked)
    return found


def blocked_inputs(traced: Traced, found: Reach, inputs: Sequence[int], outputs: Sequence[int]) -> list[Blocked]:
    """The inputs among these to which none of these outputs sends a gradient, together where one cut ends them."""
    told = [found.outputs[o] for o in outputs]
    groups: dict[tuple[str, Cut | None], list[str]] = {}
    for i in inputs:
        if not is_float(traced.jaxpr.jaxpr.invars[i].aval):
            continue
        bit = 1 << i
        if any(t.sure & bit for t in told):
            continue
        if any(t.smooth & bit for t in told):
            key: tuple[str, Cut | None] = (BRANCH, None)
        elif any(t.any & bit for t in told):
            key = (CUT, next((c for c in found.cuts if c.inputs & bit and _users(c)), None))
        else:
            key = (DISCONNECTED, None)
        groups.setdefault(key, []).append(traced.inputs[i])
    return [Blocked(kind, tuple(names), cut, traced.name) for (kind, cut), names in groups.items()]


def _users(cut: Cut) -> bool:
    return cut.place is not None and cut.op not in ("eq", "ne", "lt", "le", "gt", "ge", "is_finite")
