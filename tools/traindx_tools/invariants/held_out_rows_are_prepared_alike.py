"""Held-out rows are prepared as the training rows were.

A mean, a range or a vocabulary that a function or a data set takes of whatever rows it is given is taken anew of the
held-out rows: a level shift is taken out of inputs that the model should see it in, and word 3 is another word. A
switch that changes rows at random and is on by default changes the held-out rows as well, unless a call turns it off.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program
from traindx_tools.program.rows import Rows

RULES = pages("data", ("C373",))
_LISTED = ("glob", "rglob", "iterdir", "listdir", "scandir", "ImageFolder")
"""Folders of classes are the same in each part."""


def check(program: Program) -> Iterator[Breach]:
    """Look at every pair of rows that are trained on and rows that are evaluated."""
    trained = {r for u in program.row_uses if u.role == "trained" for r in u.rows}
    held = {r for u in program.row_uses if u.role in ("evaluated", "told", "chosen") for r in u.rows}
    seen: set[object] = set()
    for breach in (b for t in trained for e in held for b in _otherwise(t, e)):
        if breach.at not in seen:
            seen.add(breach.at)
            yield breach


def _otherwise(t: Rows, e: Rows) -> Iterator[Breach]:
    """Rows that are prepared by what was taken of themselves, or at random by a switch that nothing turns off."""
    for i, one in enumerate(t.steps):
        for j, other in enumerate(e.steps):
            if one.kind != other.kind or one.kind not in ("noise", "fitted") or other.at is None:
                continue
            if one.kind == "noise" and one.by == other.by and (t.source, t.cuts) != (e.source, e.cuts):
                yield Breach("C373", f"At {other.at} the held-out rows are changed at random: {one.part} is on by "
                             "default, for training and, as nothing turns it off, here", other.at,
                             measured={"kind": "noise"})
            if one.kind == "fitted" and one.at == other.at and one != other and one.part == other.part:
                own = one.by == {(t.source, t.steps[:i])} and other.by == {(e.source, e.steps[:j])}
                listed = other.part == "numbering" and isinstance(e.source, tuple) and e.source[-1] in _LISTED
                if own and not listed:
                    yield Breach("C373", f"At {other.at} the {other.part} is taken of whatever rows are given, of the "
                                 "training rows and anew of the held-out rows: the two come in different units",
                                 other.at, measured={"kind": str(other.part)})
