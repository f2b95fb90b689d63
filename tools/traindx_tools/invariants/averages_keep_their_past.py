"""A moving average of weights forgets its beginning within the run, and not at once, and knows the statistics it needs.

`ema = d * ema + (1 - d) * p` is an average over 1 / (1 - d) updates. With the factors swapped it equals the newest
value. Longer than the run, it is still mostly the initial weights: d^n of them after n updates. Over `parameters()`
alone a copy with BatchNorm never gets the running statistics, which are buffers, and evaluates with those of an
untrained network. A target network or a teacher, which is called in the training step itself, is slow on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.driving import Average
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = pages("state", ("C170", "C227", "C298"))
LEAST_SHARE = 0.1
"""Averages in use keep 0.9 to 0.9999 of the past."""
MOST_LEFT = 0.3679
"""decay^updates = 1/e: the run is as long as the average, 1 / (1 - decay) updates."""


def check(program: Program) -> Iterator[Breach]:
    """Look at every average."""
    for average in program.averages:
        share, updates = average.share, average.updates
        if share is not None and 0 < share <= LEAST_SHARE:
            yield Breach(
                "C170",
                f"{average.text} at {average.at} keeps a share of {share:.3g} of the average in every step: the "
                "factors are "
                "swapped, and the average is the newest value",
                average.at, Known.DERIVED, {"kind": "swapped", "share": share})
        elif share is not None and updates is not None and average.evaluated and not average.late and (
                not average.in_step and 0.5 < share < 1 and share**updates > MOST_LEFT):
            yield _too_long(average, share, updates)
        read = (average.evaluated or average.in_eval) and not average.in_step
        if average.statistics and read and not average.buffers:
            yield Breach(
                "C298",
                f"{average.text} at {average.at} averages only the parameters: the buffers of {average.statistics} "
                "(running_mean, running_var) are never copied and stay at their initial values 0 and 1",
                average.at, Known.DERIVED, {"kind": "buffers"})


def _too_long(average: Average, share: float, updates: float) -> Breach:
    left = share**updates
    return Breach(
        "C227",
        f"{average.text} at {average.at} keeps {share:g} of the average and runs {updates:g} times: {left:.0%} of it "
        "is still "
        f"the weights that the run began with ({share:g}^{updates:g}), an average over {1 / (1 - share):,.0f} updates",
        average.at, Known.GUESSED if average.pretrained else Known.DERIVED,
        {"kind": "average", "decay": round(share, 8), "updates": updates, "initial_share": round(left, 4)},
        Severity.MEDIUM if average.pretrained else None)
