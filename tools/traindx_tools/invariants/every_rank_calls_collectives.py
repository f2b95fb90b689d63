"""Every process calls each collective, and equally often.

`all_reduce`, `all_gather`, `broadcast` and `barrier` return only when every process of the group has called them. One
under `if rank == 0`, or one in a loop that runs over a rank's own share of the data (`x[rank::world_size]`, which
differs by one where the length is not divisible), leaves the others waiting until the watchdog kills the job.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = pages("ranks", ("C117",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every collective."""
    for call in program.collectives:
        if call.condition is not None:
            yield Breach(
                "C117", f"{call.name} at {call.at} runs only where the condition at line {call.condition.line} on the "
                "rank holds: the other processes never call it, and this one waits for them", call.at,
                measured={"kind": "rank", "condition_line": call.condition.line})
        if call.loop is not None:
            why = ("the shares differ in size, so one rank makes a call that the others never join" if call.uneven else
                   "if the length is not divisible by the number of processes, one rank makes one call more")
            yield Breach(
                "C117", f"{call.name} at {call.at} is called once for each item of the loop at {call.loop}, which runs "
                f"over a rank's own share of the data: {why}", call.at, Known.DERIVED if call.uneven else Known.GUESSED,
                {"kind": "uneven", "loop_line": call.loop.line}, None if call.uneven else Severity.MEDIUM)
