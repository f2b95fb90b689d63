"""What is kept of a step is not written over by the next one.

An environment, a simulator or a buffer that moves its state in place (`self.state[0] = ...`, `self.state[:2] += ...`)
and returns that very array hands out one array again and again. Kept in a replay memory or a list, all entries of an
episode are one array with its last values: observation and next observation are equal, and values learned from them
mean nothing. A copy belongs where it is returned or where it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program

RULES = pages("state", ("C262",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every array that is kept while its owner writes into it."""
    for one in program.kept_arrays:
        yield Breach("C262", f"what is returned at {one.handed} is the array that {one.written} changes in place; "
                     f"{one.text} at {one.at} keeps it without a copy: every entry becomes the latest state",
                     one.handed, measured={"kind": "alias"})
