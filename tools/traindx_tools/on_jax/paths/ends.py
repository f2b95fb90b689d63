"""Where gradients end on their ways, what each such place is for, and which of several a person would change.

A way from a parameter to the loss may end more than once: the encoder of a vector-quantised network ends at the argmin
that chooses a code, at a stop_gradient around the code, and at the one in the codebook loss. Some of these are as they
should be: the stop_gradient of a straight-through estimator, a choice that such an estimator leads past, a target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traindx_tools.on_jax.places import Place

STOP, WRONG_SIDE, STEP, CHOICE, TARGET, ESTIMATOR, ESTIMATED, COMPARISON, FORK = (
    "stop", "wrong side", "step", "choice", "target", "estimator", "estimated", "comparison", "fork")
RANK = {FORK: 0, WRONG_SIDE: 1, STOP: 2, STEP: 3, CHOICE: 3, TARGET: 4, ESTIMATOR: 5, ESTIMATED: 6, COMPARISON: 7}
"""What can be avoided comes first."""
MEANT = frozenset({TARGET, ESTIMATOR, ESTIMATED})
"""What is usually there on purpose."""
REMARKS = {
    WRONG_SIDE: "the sides of the straight-through estimator are exchanged", TARGET: "as a target",
    ESTIMATOR: "of the straight-through estimator", ESTIMATED: "which the straight-through estimator leads past"}
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_finite"})
CHOICES = frozenset({"argmax", "argmin", "top_k", "sort", "approx_top_k"})
MOST_TOLD = 4


@dataclass(frozen=True)
class Cut:
    """One end: its primitive, its line, and what it is for (a key of RANK)."""

    op: str
    place: Place | None
    role: str = STOP

    def told(self, place: Callable[[Place], str] = str, *, remark: bool = True) -> str:
        """`argmin at model.py:20`, with a remark on what it is for."""
        where = f"{self.op} at {place(self.place)}" if self.place is not None else self.op
        return f"{where} ({REMARKS[self.role]})" if remark and self.role in REMARKS else where


def role_of(op: str) -> str:
    """What an end is for, as far as its primitive tells."""
    if op == "stop_gradient":
        return STOP
    return COMPARISON if op in COMPARISONS else CHOICE if op in CHOICES else STEP


def ordered(cuts: list[Cut]) -> tuple[Cut, ...]:
    """Each place once, the one to change first; comparisons only where nothing else ends a way."""
    told = [c for c in cuts if c.role != COMPARISON] or [c for c in reversed(cuts) if c.place is not None]
    best: dict[tuple[str, Place | None], Cut] = {}
    for cut in sorted(told, key=lambda c: RANK[c.role]):
        best.setdefault((cut.op, _line(cut.place)), cut)
    return tuple(best.values())


def listed(cuts: tuple[Cut, ...], place: Callable[[Place], str] = str) -> str:
    """`stop_gradient at model.py:23, argmin at model.py:20 and 2 more`."""
    first = cuts[0].told(place, remark=cuts[0].role != TARGET)  # where nothing else ends, it is no target
    more = [f"{len(cuts) - MOST_TOLD} more"] if len(cuts) > MOST_TOLD else []
    told = [first, *(c.told(place) for c in cuts[1:MOST_TOLD]), *more]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"


def _line(place: Place | None) -> Place | None:
    return None if place is None else Place(place.file, place.line, "")
