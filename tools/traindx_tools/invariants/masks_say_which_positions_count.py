"""A mask keeps out what it is meant to keep out, in the form that its reader takes, and leaves something to choose.

The padding masks of torch's attention are True where a position is to be ignored: `ids != pad`, `arange(n) < lengths`,
or ones for a token in front ignore the text and attend to the padding. What is added to scores has to be 0 where a
position counts and -inf (or -1e9) where not: ones and zeros raise some scores by 1 and block nothing; the library adds
a mask of floats in the same way. A number beyond 65504 does not fit into float16 ("value cannot be converted to type
at::Half without overflow"). A row that is filled with -inf throughout is NaN after the softmax. And where the target is
the input one position ahead, attention without a causal mask reads its own answer. A cross entropy leaves out what its
ignore_index says: padded labels without one are mostly one easy class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment
from traindx_tools.program.uses import MaskUse

RULES = pages("masks", ("C149", "C157", "C174", "C257", "C277", "C351"))
_LARGEST_HALF = 65504.0
"""IEEE 754 binary16."""


def check(program: Program) -> Iterator[Breach]:
    """Look at every use of a mask; once for each place."""
    told: set[tuple[str, str]] = set()
    for use in program.mask_uses:
        breach = _breaches(use)
        if breach is not None and (breach.id, str(breach.at)) not in told:
            told.add((breach.id, str(breach.at)))
            yield breach


def _breaches(use: MaskUse) -> Breach | None:
    if use.how == "missing":
        why = (f"{use.target} at {use.at} attends without a causal mask, and the loss at {use.next_token} compares its "
               "output with the next tokens of the same input: every position can read its answer")
        return Breach("C157", why, use.at, Known.GUESSED, {"kind": "causal", "loss_line": use.next_token.line})
    if use.how == "padded labels":
        return Breach("C257", f"{use.text} at {use.at} gets labels that are padded, and has no ignore_index: padding "
                      "is a class of the loss", use.at, measured={"kind": "sequence"})
    if use.how == "filled":
        return _filled(use)
    if use.how == "padding" and use.true_for == "content" and use.boolean is not False:
        why = (f"{use.text} of {use.target} at {use.at} is True for the real tokens; torch ignores the positions where "
               "it is True")
        return Breach("C149", why, use.at, measured={"kind": "mask", "argument": use.text},
                      remedy=Remedy("turn the mask", _act(use), text=use.text))
    zero_one = use.low == 0 and use.high == 1
    if zero_one and (use.how == "added" or use.boolean is False):
        does = "adds it to the scores as it is" if use.how == "added" else f"hands it to {use.target} as numbers, " \
            "which adds it to the scores (booleans would block)"
        return Breach("C351", f"a mask holds ones and zeros, and {use.text} at {use.at} {does}: nothing is blocked; a "
                      "mask that is added needs -inf where nothing may be attended to", use.at, measured={
                          "kind": use.how})
    return None


def _filled(use: MaskUse) -> Breach | None:
    value = use.value or 0.0
    if math.isinf(value):
        if use.target != "softmax" or use.guarded or use.true_for == "triangle":
            return None
        why = (f"{use.text} at {use.at} fills with -inf where a mask from the data says so, and a softmax follows: a "
               "row that keeps nothing becomes NaN")
        return Breach("C277", why, use.at, Known.GUESSED, {"kind": "masked row"}, is_companion=True)
    certain = use.half is Known.DERIVED
    if use.half is None or not abs(value) > _LARGEST_HALF or not (certain or use.target == "softmax"):
        return None
    return Breach("C174", f"{use.text} at {use.at} fills with {value:g}, beyond the largest float16 number (65504)" + (
        "" if certain else "; the program also runs in float16"), use.at, use.half, {"kind": "mask", "value": value},
        Severity.HIGH if certain else Severity.MEDIUM, Remedy("fits every type", _act(use), text=str(value)))


def _act(use: MaskUse) -> Act:
    return Act(Moment.FORWARD, use.at, origin=use.origin)
