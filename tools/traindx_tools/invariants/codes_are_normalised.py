"""Codes that are looked up by cosine have length 1, as what they are compared with has.

A normalised codebook chooses the code of the largest cosine. Where only the encoder's output is brought to length 1,
the product with a code grows with the length of that code: a few long codes win everywhere whatever their direction,
the others are never chosen and never move.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program

RULES = pages("constants", ("C290",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every choice of a code by a product."""
    for one in program.code_lookups:
        if one.looked_up and not one.normalised:
            yield Breach(
                "C290", f"{one.text} at {one.at} multiplies normalised rows with the {one.table}, which is not "
                f"normalised: the choice at line {one.chosen.line} prefers the codes with the largest norm, whatever "
                "their direction", one.at, measured={"kind": "cosine", "table": one.table})
