"""The equation that made the first NaN or infinity which reached an output of a JAX function.

The function's jaxpr is evaluated equation by equation, with the arguments of the call that went wrong: through jit,
remat, custom_jvp, custom_vjp, the branch of a cond that was taken, and the iteration of a scan or while loop. Forward
pass, backward pass and optimizer are all equations of a train step. The origin is the first equation whose inputs were
finite and whose output was not, on the way to an output that is not finite; it is named with the line of the user's
code that made it, the path through loops and branches, the place in the array (under vmap: which example) and what it
was given.

An infinity that the program writes on purpose (a mask of -inf, a start value of a maximum) is no origin while it is
turned into finite values; where it becomes NaN, that equation is the origin. What never reaches an output is none
either. An equation of the backward pass has the line of the forward operation, or that of the rule of a custom_vjp.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.on_jax.nonfinite.marks import ARGUMENT, CONSTANT
from traindx_tools.rules import Rule

if TYPE_CHECKING:
    from traindx_tools.on_jax.nonfinite.found import Origin
    from traindx_tools.on_jax.nonfinite.marks import Candidate
    from traindx_tools.on_jax.places import Place

RULE = Rule(
    id="J101",
    name="jax-nonfinite-origin",
    title="The equation that made the first NaN or infinity",
    severity=Severity.CRITICAL,
    sees="every equation of the function's jaxpr, with its inputs and outputs",
    matters="everything after it is a consequence; this is the line to change",
    alike=("jax_debug_nans stops at the first NaN, also at one that a where removes, and cannot repeat a call whose "
           "arguments were donated",
           "an infinity in a mask that softmax turns into 0 is legitimate and is not named"),
    confirm=("look at the smallest and largest input that the statement names, at its line",
             "traindx run -- CMD after the change: no J1xx finding"),
)


def check(origin: Origin) -> Iterator[Finding]:
    """The finding for an origin."""
    place = _place(origin)
    if place is not None:
        where = Location(file=place.file, line=place.line, step=origin.step, rank=origin.rank, quote=place.quote)
    else:
        where = Location(step=origin.step, rank=origin.rank, module=f"the arguments of {origin.function}")
    yield RULE.finding(_statement(origin, place), where, "the traced call", measured=_measured(origin, place),
                       bearing=Bearing.CAUSE, title=f"Origin of the first non-finite value: {origin.reason.id}")


def _place(origin: Origin) -> Place | None:
    """The line to change: an integer overflow that is behind it comes first."""
    return origin.wrapped.place if origin.wrapped is not None else origin.candidate.place


def _statement(origin: Origin, place: Place | None) -> str:
    it = origin.candidate
    when = f"call {origin.step} of {origin.function}: " if origin.step is not None else f"{origin.function}: "
    reached = f"it reached {_several(origin.outputs)}"
    if it.kind in (ARGUMENT, CONSTANT):
        return f"{when}{origin.reason.words}; {reached}"
    at = f" at {it.place}" if it.place else ""
    within = f" ({', '.join(it.path)})" if it.path else ""
    head = f"{when}{it.op} in the {_phase(it)}{within}{at}: {origin.reason.words}"
    if origin.wrapped is not None:
        w = origin.wrapped
        head += f": {w.op} of {w.dtype} at {w.place} should give {w.exact:.6g}"
    given = "; ".join(f"input {i}: {s}" for i, s in enumerate(it.inputs[:3]))
    example = f", first at index {it.index}" if it.index and it.output and it.output.count > 1 else ""
    vmapped = f" (example {it.index[0]} of a vmap)" if it.index and "vmap" in it.stack else ""
    return f"{head}; given {given}, it gave {it.output}{example}{vmapped}; {reached}"


def _several(names: tuple[str, ...]) -> str:
    named = [f"output {n}" if n else "the result" for n in names[:2]]
    return ", ".join(named) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _phase(it: Candidate) -> str:
    return {"backward": "backward pass", "optimizer": "optimizer step"}.get(it.phase, "forward pass")


def _measured(origin: Origin, place: Place | None) -> dict[str, Value]:
    it = origin.candidate
    found: dict[str, Value] = {
        "reason": origin.reason.id, "op": origin.wrapped.op if origin.wrapped else it.op, "phase": it.phase,
        "kind": it.kind, "path": it.path, "transforms": it.stack, "reached": origin.outputs,
        "other_origins": origin.others, "function": origin.function, "index": it.index}
    if origin.call is not None:
        found["call"] = origin.call
    if it.name:
        found["name"] = it.name
    if place is not None:
        found |= {"file": place.file, "line": place.line, "code": place.quote}
        if place.library:
            found["library"] = place.library
    if origin.wrapped is not None:
        found["seen_op"] = it.op
    if it.inputs:
        first = it.inputs[0]
        found |= {"input_dtype": first.dtype, "input_zeros": first.zeros, "divisor_size": it.inputs[-1].count}
        if math.isfinite(first.least):
            found |= {"input_min": first.least, "input_max": first.most,
                      "input_largest": max(abs(first.least), abs(first.most))}
    if it.output is not None:
        out = it.output
        found |= {"dtype": out.dtype, "nan_share": out.nans / out.count, "inf_share": out.infs / out.count}
    return found
