"""Two distances train a codebook: one pulls the codes to the encoder's output, the other the output to its code.

|sg(z) - q| moves the codes, |z - sg(q)| the encoder. With q cut in both, the codes get no gradient and stay at their
initialisation; a distance with both sides cut trains nothing. A table that is kept by moving averages needs the second
term only and is left alone, as is one whose rows reach a loss on another way.

`z + sg(q - z)` has the value of q and the gradient of z: the straight-through estimator. `sg(z + (q - z))` has no
gradient at all: nothing reaches the encoder, which stays at its initialisation while the decoder learns.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = (*pages("ownership", ("C187",)), *pages("jax", ("C503",)))


def check(program: Program) -> Iterator[Breach]:
    """Look at every distance with a side that is cut; the last of those that cut the same table is told of."""
    for one in program.whole_cuts:
        yield Breach("C503", f"{one.text} at {one.at} cuts the whole straight-through expression from the graph: only "
                     f"{one.change} should be, so no gradient reaches {one.kept}", one.at,
                     measured={"kind": "straight-through", "kept": one.kept}, remedy=Remedy(
                         "cut the difference", Act(Moment.FORWARD, one.at, origin=one.origin), text=one.instead))
    told: dict[str | None, Breach] = {}
    for distance in program.distances:
        if not distance.of_a_table:
            continue
        if distance.both_cut:
            yield Breach("C187", f"{distance.text} at {distance.at} has both sides cut from the graph: it trains "
                         "neither codes nor encoder", distance.at, measured={"kind": "both"})
        elif not distance.reached:
            told[distance.at.function] = Breach(
                "C187", f"{distance.text} at {distance.at} cuts {distance.cut}, as every distance here does: the "
                "codebook gets no gradient and stays at its initialisation", distance.at, measured={"kind": "codebook"})
    yield from told.values()
