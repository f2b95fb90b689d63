"""What a compiler traces is pure: it reads its arguments, needs no values, does nothing else, and is compiled once.

Python code in a traced function runs once, while tracing; arguments have a shape and a type and no value there. An
`if`, `float(x)` or `np.f(x)` of an argument fails at the first call (`jnp.where`, `lax.cond`, a static argument). A
draw of numpy, the clock, a print, a write to self, a global or an outer list happens once: the same numbers for ever,
or a tracer that leaks. A name, attribute, global or entry from outside is a constant inside, whatever sets it anew
later, also in what the function calls; so is each attribute of a static self, and a self that is no pytree cannot be
traced. jit remembers what it compiled by the function object: a new lambda or a function defined in a loop is
compiled anew in every iteration, and so is a static argument that changes (`jnp.asarray(t)` is traced).
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program
from traindx_tools.program.traced import CompiledAnew, OutsideRead, TracedFunction

RULES = pages("jax", ("C511", "C512", "C513", "C514", "C517", "C519", "C531"))
_ONCE = {
    "random": "is drawn once, while tracing: every call uses the same numbers", "clock": "is read once, while tracing",
    "iterator": "takes one item, while tracing: every call uses the same one", "print": "prints a tracer, once",
    "append": "puts a tracer into something outside: it leaks", "attribute": "is written once, while tracing",
    "counter": "runs once, while tracing: no later call counts", "global": "is written once, while tracing",
}
_WEIGHT = {"print": Severity.LOW, "clock": Severity.MEDIUM}


def check(program: Program) -> Iterator[Breach]:
    """Look at every traced function, and at what is compiled in loops."""
    for one in program.traced:
        yield from _needs_values(one)
        yield from _does_more(one)
        yield from (_reads(one, read) for read in one.reads)
        if one.plain_self:
            yield Breach("C514", f"{one.name} ({one.how}) at {one.at} traces self: {one.plain_self} is no JAX type, "
                         "and its first call fails", one.at, measured={"kind": "traced", "function": one.name})
    yield from map(_anew, program.compiled_anew)


def _needs_values(one: TracedFunction) -> Iterator[Breach]:
    for asked in one.asked:
        who = f"{asked.function or one.name} ({asked.how or one.how})"
        if asked.kind == "branch":
            yield Breach(
                "C511", f"{asked.text} at {asked.at} needs the value of a traced argument of {who}: there is none "
                "while tracing", asked.at, measured={"kind": "branch", "function": asked.function, "how": asked.how})
        else:
            yield Breach("C517", f"{asked.text} at {asked.at} needs the numbers of a traced value in {who}: there are "
                         "none while tracing", asked.at, measured={"kind": asked.kind, "function": one.name})


def _does_more(one: TracedFunction) -> Iterator[Breach]:
    for effect in one.effects:
        yield Breach(
            "C512", f"In {one.name} ({one.how}), at {effect.at}: {effect.text} {_ONCE[effect.kind]}", effect.at,
            measured={"kind": effect.kind, "function": one.name}, severity=_WEIGHT.get(effect.kind, Severity.HIGH))


def _reads(one: TracedFunction, read: OutsideRead) -> Breach:
    if read.of_static_self:
        return Breach("C514", f"{one.name} ({one.how}) at {read.at} has self static and reads {read.text}, which "
                      f"{read.change} at {read.changed} changes: it keeps the first value", read.at,
                      measured={"kind": "static", "function": one.name})
    within = f" (by {read.via}, which it uses)" if read.via else ""
    return Breach(
        "C513", f"{one.name} ({one.how}) reads {read.text} at {read.at}{within} from outside, a Python value that is "
        f"fixed while tracing, and {read.change} at {read.changed} sets it anew: the compiled function keeps the value "
        "of its first call", read.at, measured={"kind": "captured", "name": read.text})


def _anew(one: CompiledAnew) -> Breach:
    if one.static:
        return Breach("C531", f"{one.text}, called at {one.loop}, is compiled for each value of its static parameter "
                      f"{one.static}, and the loop changes it: a new compilation in every turn", one.at,
                      measured={"kind": "static", "argument": one.static})
    if one.by:
        return Breach("C519", f"{one.by} compiles a new function at {one.at} in every call, and the loop at {one.loop} "
                      "calls it: every step traces and compiles again", one.at, measured={"kind": "called"})
    return Breach("C519", f"{one.text} at {one.at} compiles a new function in every iteration of the loop at line "
                  f"{one.loop.line}", one.at, measured={"kind": "loop"})
