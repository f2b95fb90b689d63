"""What a pure function returns is used, and what is named is called.

Nothing in JAX changes in place. `optax.apply_updates`, `state.apply_gradients` and a train step return new values; so
do `x.at[i].set(v)`, the new optimizer state that `tx.update` gives, the gradients of `value_and_grad`, and the batch
statistics of flax's apply with `mutable`. A call as a statement, a part bound to a name that nothing reads, or one
that is not carried on leaves the old values in use: parameters that never change, moments that start from zero in
every step, an array that keeps its values, an evaluation with mean 0 and variance 1. And `optimizer.zero_grad` without
brackets, in any framework, names a method and does nothing, without an error.

`optax.masked(adam, mask)` hands what the mask leaves out through as it came: the update is the gradient itself, with a
plus sign, and what was to stay frozen climbs the loss. Freezing takes `set_to_zero` for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = (*pages("jax", ("C506", "C507", "C509", "C530", "C536")), *pages("step_order", ("C365",)))
_LACKING = {
    Moment.BACKWARD.value: "no gradient is computed",
    Moment.CLEAR.value: "the gradients are not cleared and pile up from step to step",
    Moment.STEP.value: "no step is made",
    Moment.MODE.value: "the mode stays as it was",
    Moment.SCHEDULE.value: "the schedule stays where it is",
    Moment.UNSCALE.value: "the gradients stay multiplied by the loss scale",
}
_TOLD = {
    "parameters": ("C506", "parameters", "{call} returns new values and its result is not used: the parameters stay as "
                   "they were"),
    "state": ("C506", "state", "the new optimizer state that {call} returns is not kept: moments start anew in every "
              "step, and a schedule of the learning rate stays at its first value"),
    "statistics": ("C507", "batch_stats", "{call} returns new {name} (mutable), and nothing in the project puts them "
                   "back into the state: evaluation uses the initial statistics"),
    "array": ("C509", "at", "{call} returns a new array that is not used: {name} keeps its old values"),
    "pure": ("C509", "pure", "{call} changes nothing and returns something new, which is not used"),
    "bound": ("C506", "bound", "{call} binds the {name} of before the loop, which gets new ones in every turn: who "
              "calls it sees the initial ones for ever"),
    "masked": ("C530", "masked", "{call} hands the gradients of the other parameters through unchanged: apply_updates "
               "adds the raw gradient to what was to be frozen"),
    "argument": ("C536", "argument", "{call} takes the gradient by {from_} and it is applied to {to}: the updates are "
                 "those of other parameters"),
    "gradients": ("C536", "not used", "the gradients that are bound to {name} are read nowhere: no update is made from "
                  "them, so no parameter changes"),
}

_REMEDIED = ("parameters", "state", "statistics", "array", "gradients")


def check(program: Program) -> Iterator[Breach]:
    """Look at every result that nothing reads."""
    for one in program.unused_results:
        if one.kind == "method":
            yield Breach("C365", f"{one.call} at {one.at} names a method and does not call it: "
                         f"{_LACKING.get(one.name, 'nothing happens there')}", one.at,
                         measured={"kind": one.name or "method"},
                         severity=None if one.name in _LACKING else Severity.MEDIUM)
            continue
        if one.kind not in _TOLD:
            continue
        rule, kind, said = _TOLD[one.kind]
        guessed = one.kind == "state" and one.known is Known.GUESSED
        severity = Severity.HIGH if guessed or one.kind == "bound" else None
        from_, _, to = one.name.partition("|")
        remedy = Remedy("keep the result", Act(Moment.STEP, one.at, origin=one.origin), text=one.kind)
        yield Breach(rule, f"At {one.at} {said.format(call=one.call, name=one.name, from_=from_, to=to)}", one.at,
                     one.known, {"kind": kind}, severity, remedy if one.kind in _REMEDIED else None)
