"""Which inputs of a loss get a gradient, in one line, for a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.blocked import BRANCH, DISCONNECTED, Blocked
from traindx_tools.on_jax.paths.ends import listed
from traindx_tools.on_jax.paths.gradient import blocked_inputs
from traindx_tools.on_jax.paths.reach import is_float, reach
from traindx_tools.on_jax.places import Place
from traindx_tools.on_jax.tracing import Traced

MOST_NAMES, MOST_GROUPS = 6, 3
HINT = "a single float comes out: --wrt ARG names what of an argument gets no gradient"


def loss_like(traced: Traced) -> bool:
    """Whether a function returns a single float, alone or first of several, as `jax.grad` asks for."""
    body = traced.jaxpr.jaxpr
    if not body.outvars or traced.outputs[0] not in ("", "[0]"):
        return False
    aval = body.outvars[0].aval
    return is_float(aval) and not aval.shape and not internals.is_literal(body.outvars[0])


def judged(traced: Traced, positions: Sequence[int]) -> tuple[list[Blocked], str]:
    """Inputs of these arguments without a gradient, and what is to be said of all of them in a line."""
    body = traced.jaxpr.jaxpr
    wanted = [i for i, p in enumerate(traced.positions) if p in positions and is_float(body.invars[i].aval)]
    blocked = blocked_inputs(traced, reach(traced.jaxpr), wanted, [0])
    return blocked, _line(traced, wanted, blocked)


def by_itself(traced: Traced) -> str:
    """The line for a function that nobody called a loss: of its first argument if that is floats alone, or a hint."""
    if not loss_like(traced):
        return ""
    first = [v.aval for v, p in zip(traced.jaxpr.jaxpr.invars, traced.positions, strict=False) if p == 0]
    if not first or not all(map(is_float, first)) or not any(a.shape for a in first):
        return HINT
    return judged(traced, [0])[1]


def _line(traced: Traced, wanted: Sequence[int], blocked: Sequence[Blocked]) -> str:
    none = sum(len(b.names) for b in blocked if b.kind != BRANCH)
    root = ", ".join(dict.fromkeys(traced.inputs[i].split("[")[0].split(".")[0] for i in wanted))
    groups = list(_groups(blocked, lambda p: f"{Path(p.file).name}:{p.line}"))
    left = [f"{len(groups) - MOST_GROUPS} more reasons"] if len(groups) > MOST_GROUPS else []
    return "; ".join([f"{len(wanted) - none} of {len(wanted)} float inputs of {root or 'nothing'} get one",
                      *groups[:MOST_GROUPS], *left])


def _groups(blocked: Sequence[Blocked], place: Callable[[Place], str]) -> Iterator[str]:
    for group in blocked:
        more = [f"{len(group.names) - MOST_NAMES} more"] if len(group.names) > MOST_NAMES else []
        names = ", ".join([*group.names[:MOST_NAMES], *more])
        told = listed(group.cuts, place) if group.cuts else ""
        if group.kind == BRANCH:
            yield f"in some branches only {names}" + (f" ({told})" if told else "")
        elif group.kind == DISCONNECTED:
            yield f"not used {names}"
        else:
            yield f"none reaches {names}" + (f": ends at {told}" if told else "")


def positions_of(fn: Any, argument: str) -> list[int]:
    """The position of an argument that is given by name or number. Raises BadUsage with the names there are."""
    import inspect

    from traindx_tools.errors import BadUsage
    from traindx_tools.on_jax.tracing import unwrapped

    try:
        names = list(inspect.signature(unwrapped(fn)).parameters)
    except (TypeError, ValueError):
        names = []
    if argument.isdecimal() and (not names or int(argument) < len(names)):
        return [int(argument)]
    if argument not in names:
        raise BadUsage(f"no argument {argument!r}: the function has {', '.join(names) or 'none that can be read'}")
    return [names.index(argument)]
