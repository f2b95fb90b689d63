"""What is taken out of a checkpoint is what the program goes on with: nothing writes over it before it is read.

A line below the load that sets the variable to its first value, a `reset()` of the object that took the state, an
optimizer, schedule, normaliser or generator that is made after the load: the file was read, no error is raised, and the
run starts anew in this one respect. A loop that counts in the variable that holds the restored position begins where it
always begins. A default that is set under another condition, or before the load, is none of these.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.parts import RestoredLost
from traindx_tools.program.program import Program

RULES = pages("state", ("C354",))


def check(program: Program) -> Iterator[Breach]:
    """Look at everything that is lost."""
    for one in program.restored_lost:
        yield Breach("C354", f"{one.entry} is taken out at {one.at} and {_why(one)}", one.lost,
                     Known.GUESSED if one.kind == "position" else Known.DERIVED,
                     {"kind": one.kind, "target": one.target, "entry": one.entry[:80], "load_line": one.at.line or 0})


def _why(one: RestoredLost) -> str:
    if one.kind == "position":
        return f"the loop at {one.lost} counts in {one.target} from its own beginning: nothing reads the restored one"
    if one.replaced:
        return f"{one.target} is made anew at {one.lost}, before anything uses the one that took it"
    return f"{one.target} is set anew at {one.lost}, before anything reads it"
