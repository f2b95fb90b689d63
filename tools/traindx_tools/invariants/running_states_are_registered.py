"""What a module keeps of its past is in its state_dict.

`state_dict` holds parameters and buffers. A tensor that `__init__` assigns to a plain attribute and that the module
itself updates (a running mean, the usage of codes, a queue of keys) is left out: after load_state_dict every key
matches, and the state is back at what `__init__` made. The numbers in the same process are good, those of the loaded
model are garbage. `.to(device)` does not move it either. What is set back or replaced, what the checkpoint has under a
key of its own, and what nothing but its own update reads, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.parts import RunningState
from traindx_tools.program.program import Program

RULES = pages("state", ("C226",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every running state, together with the others of its class."""
    classes: dict[tuple[str, str], list[RunningState]] = {}
    for state in program.running_states:
        classes.setdefault((state.made.file, state.owner), []).append(state)
    for states in classes.values():
        first, many = states[0], len(states) > 1
        names = ", ".join(f"self.{s.name}" for s in states)
        kind = "are plain attributes and no buffers" if many else "is a plain attribute and no buffer"
        effect = (f"state_dict leaves {'them' if many else 'it'} out, and a loaded {first.owner} starts from what "
                  "__init__ makes" if first.saved else "state_dict would leave it out, and .to(device) moves it not")
        yield Breach(
            "C226", f"{names} of {first.owner}, made at {first.made} and updated at line {first.changed.line}, {kind}: "
            f"{effect}", first.made, Known.DERIVED if first.saved else Known.GUESSED,
            {"kind": "state", "attributes": ", ".join(s.name for s in states), "saved": first.saved},
            None if first.saved else Severity.LOW)
