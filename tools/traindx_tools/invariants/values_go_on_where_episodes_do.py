"""The value of the next state counts where the episode goes on.

A bootstrapped target is `reward + gamma * (1 - done) * value(next)`. With `done` itself as the factor, the next value
is added at the end of an episode, where there is none, and left out everywhere else: rewards are never handed back over
more than one step. The loss looks fine, since the targets are easy; the policy does not improve.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program

RULES = pages("recipes", ("C234",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every discounted value that is multiplied by a flag."""
    for one in program.bootstraps:
        which = f", which is {one.flag}" if one.flag else ""
        yield Breach(
            "C234", f"{one.text} at {one.at} multiplies the next value by {one.factor}{which}: it counts only at "
            "the end of an episode", one.at, measured={"kind": "inverted", "factor": one.factor})
