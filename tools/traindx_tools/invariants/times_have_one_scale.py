"""A network is told the time in the scale in which it learned it.

A diffusion or flow model is trained with `t / T`, a share of the way, and its sampler passes the index, 0 to T - 1 (or
the other way round). The time embedding is then asked for values that it never saw, nearly all of them far outside, and
the predicted noise is wrong at every step. The training loss is as it should be, samples are not, and more steps make
them worse. A network that divides by itself is given the index in both.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program

RULES = pages("data", ("C311",))


def check(program: Program) -> Iterator[Breach]:
    """Compare the times that count a loop with those that were drawn for the same network."""
    for sampled in program.timed_calls:
        trained = [t for t in program.timed_calls if t.drawn and t.network == sampled.network
                   and t.place == sampled.place]
        if not sampled.drawn and trained and sampled.scale not in {t.scale for t in trained}:
            yield Breach("C311", f"{sampled.text} at {sampled.at} passes the {sampled.scale} as the time, and "
                         f"training passes the {trained[0].scale} ({trained[0].text} at {trained[0].at}): the scales "
                         "differ", sampled.at,
                         measured={"kind": "time scale", "sampling": sampled.scale, "training": trained[0].scale})
