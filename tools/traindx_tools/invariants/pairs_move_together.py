"""An image and what belongs to its places are moved by one draw.

A random flip, crop or rotation that is called once for the image and once for its mask draws anew each time: the two no
longer lie on each other, and the model learns from masks of other places. The same happens where one branch of a joint
augmentation moves only one of the two. Told of samples of two values alone: two
views of one image are meant to differ, and a pair with a label beside it may be.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = pages("data", ("C195", "C232"))


def check(program: Program) -> Iterator[Breach]:
    """Look at every sample that is moved in two calls."""
    for pair in program.pairs_apart:
        if pair.alone:
            yield Breach(
                "C232", f"{pair.second} at {pair.at} moves one of two values alone: {pair.first} stays as it was, and "
                "the two no longer lie on each other", pair.at, measured={"kind": pair.what, "left": pair.first})
            continue
        yield Breach(
            "C195", f"{pair.second} at {pair.at} draws other random parameters than {pair.first} ({pair.what}): the "
                    "two are "
            "transformed differently, and no longer lie on each other", pair.at, Known.GUESSED, {"kind": "drawn apart"})
