"""A view or reshape lays new borders between elements and moves none.

`view` and `reshape` keep the elements in their order in memory. To ask for the same sizes in another order, (batch,
channels, time) of a (batch, time, channels) tensor, raises no error: each row of the result holds pieces of several
time steps. The same happens to attention heads that are cut with `q.view(batch, heads, time, width)`: each head sees
slices of other positions. The model trains, worse than it could. One axis split into several, and neighbours merged
into one, are left alone, as is what is cut at once, such as a shift of relative positions.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program

RULES = pages("axes", ("C247",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every view that asks for axes in another order."""
    for moved in program.axes_moved:
        yield Breach(
            "C247", f"{moved.text} at {moved.at} asks for the size of axis {moved.axis} at axis {moved.place}: a "
            "reshape moves no element, so positions are mixed instead of transposed", moved.at,
            measured={"kind": "reordered", "from": moved.axis, "to": moved.place})
