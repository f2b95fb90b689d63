"""Two numbers of a log were tied to each other, and from a step on they are not.

A perplexity that was the exponential of the loss to the last printed digit and is 1.3 times that from step 700 on; a
total that was the sum of its parts and no longer is: one of them is computed from something else from there on (another
mask, another count, another batch, a term in another precision, a line of code that came with a stage). Which relation
holds is taken from the first part of the record (`relations.py`); one that never held to rounding is none.

Where the same parts with another weight give the total behind the break, the program changed that weight: it switches a
term on or anneals it, which is a remark, or it leaves a term out that is still logged, which is minor.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.relations import BEYOND, FITTED, LAST, OFF, Broken, broken
from traindx_tools.on_logs.curves.shapes import number, place
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

GONE = 0.01

RULE = Rule(
    id="L113",
    name="relation-breaks",
    title="Numbers that were tied to each other part",
    severity=Severity.MEDIUM,
    sees="perplexity and loss, bits and loss, a total and its parts, in the same records",
    matters="One of them is no longer what its name says, and decisions by it are wrong.",
    alike=("Means over windows of other lengths: they never agree to rounding, and are left alone.",
           "The weight of a term that is switched on or annealed: told as a remark, with the weight.",
           "A perplexity that is capped, and a loss that leaves its level at the same record: left alone."),
    confirm=("Compute both by hand from one batch before and one behind that step.",
             "Look for what begins at that step: a stage, a resume, another loss, another batch size."),
    thresholds={
        "fitted": Threshold(FITTED, "records", "of which the relation is learned, at least"),
        "off": Threshold(OFF, "of the value", "less may be precision"),
        "beyond": Threshold(BEYOND, "times what the printed digits allow", "rounding of all values that enter"),
        "last": Threshold(LAST, "records", "behind the break"),
        "gone": Threshold(GONE, "of its weight before", "below, a term counts no more"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """One finding a relation that breaks."""
    for one in broken(run):
        yield _finding(one)


def _finding(b: Broken) -> Finding:
    s, kind = b.series, _kind(b)
    told = (f"from {place(s, b.at)} on, {s} ({s.original}) is {number(b.ratio)} times {b.words}: it was that to the "
            f"last digit in the {b.held} records before, and is {number(b.value)} in place of {number(b.expected)}")
    if b.after:
        told += f". With a weight of {number(b.weights[1])} for {b.part} in place of {number(b.weights[0])} it is again"
        told += ", though that term is still logged" if kind == "term-left-out" else ""
    severity = {"weight-changed": Severity.INFO, "term-left-out": Severity.LOW}.get(kind, Severity.MEDIUM)
    return RULE.finding(told, s.at(b.at, len(s) - 1), s.source, bearing=Bearing.SIGN, severity=severity,
                        measured={"kind": kind, "metric": s.name, "records": b.off, "held": b.held, "ratio": b.ratio,
                                  "value": b.value, "expected": b.expected, "part": b.part,
                                  "position": float(s.position[b.at])})


def _kind(b: Broken) -> str:
    if not b.after or b.kind != "sum":
        return b.kind
    before, after = map(abs, b.weights)
    return "term-left-out" if after <= GONE * before and b.part else "weight-changed"
