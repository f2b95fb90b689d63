"""Each prediction is compared with its own target.

A layer with one output gives shape (N, 1), a target of single numbers has shape (N,). Subtracting them broadcasts to
N x N; the mean of it is smallest where every prediction is the mean target, so the model learns a constant. torch warns
once for `mse_loss`, and not at all for a subtraction written by hand. A causal language model's labels move by one
position against its logits. Done once in the data and again in the loss (a helper that shifts, or a Hugging Face model,
which shifts inside when it is given `labels`), the model learns to predict the token after the next.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = (*pages("losses", ("C109",)), *pages("torch", ("C114",)))


def check(program: Program) -> Iterator[Breach]:
    """Look at every loss whose sides do not belong together."""
    for one in program.mismatches:
        if one.kind == "broadcast":
            yield Breach(
                "C109", f"{one.text} at {one.at} ({one.name}) broadcasts {one.shape} against {one.other}: each sample "
                "of one side meets all samples of the other, N x N", one.at,
                measured={"kind": "broadcast", "prediction_made_at": one.made},
                remedy=Remedy("same shape", Act(Moment.LOSS, one.at, origin=one.origin)))
        else:
            why = (f"{one.name} shifts labels itself, and these are shifted already" if one.made else
                   "its labels lost their first position twice, so position t is compared with token t + 2")
            yield Breach("C114", f"Labels are shifted twice before {one.name} at {one.at}: {why}", one.at,
                         measured={"kind": "shift"})
