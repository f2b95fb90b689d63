"""The importance ratio of several epochs compares two policies.

PPO goes several times over what an older policy did, and exp(new - old) says how far the policy has moved since. Where
old is `logp.detach()`, or the same call under `no_grad` right before, it is computed by the policy of this very step:
the ratio is exactly 1 in every epoch, the clip never acts, and later epochs follow a gradient that assumes fresh
samples. With one update a rollout that is right, and nothing is said; so it is where samples are drawn in the loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program

RULES = pages("recipes", ("C258",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every ratio of a policy to itself that a loop repeats."""
    for one in program.own_ratios:
        times = f"{one.times:g} times" if one.times is not None else "several times"
        yield Breach("C258", f"{one.text} at {one.at} is exactly 1 in each turn of line {one.loop} ({times}): "
                     f"the old log-probability, at {one.old}, is that of the same policy in the same step", one.at,
                     measured={"kind": "itself", "loop_line": one.loop}, severity=Severity.MEDIUM)
