"""A model's outputs come back in another order than its samples: each row belongs to another sample's target.

Sequences are sorted by length before they are packed, rows by expert, nodes by graph, and the results have to go back
to where they came from. Indexed with the order once more instead of with its inverse, or not at all, the loss compares
each output with the target of another sample: the model learns the shares of the classes and nothing else. Each sample
is asked for alone on a copy: where each row is the own output of one sample, which one it is is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.dependence import SOURCE, Where
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="T732",
    name="rows-reordered",
    title="A model's outputs are in another order than its samples",
    severity=Severity.CRITICAL,
    sees="the output of a copy of the model for each sample of a batch alone, and where it stands in the output of the "
         "batch",
    matters="each output is compared with the target of another sample",
    alike=("a model that returns the order as well, or its inputs in that order: its caller pairs them",
           "a loss whose targets were put in another order than the DataLoader gave"),
    confirm=("out, one = model(x), model(x[3:4]); print((out - one).abs().amax(1).argmin())  # expected: 3",),
    thresholds={"moved": Threshold(2, "rows that are another sample's", "an exchange moves two")},
)


def check(order: Sequence[int], where: Where, within: str = "") -> Iterator[Finding]:
    """`order`: by row of the output, the sample whose own output it is; `within`: the module inside that gives it."""
    moved = [(row, sample) for row, sample in enumerate(order) if row != sample]
    if not moved:
        return
    told = ", ".join(f"row {row} is that of sample {sample}" for row, sample in moved[:3])
    of = f"the output of {within}" if within else "the output"
    yield RULE.finding(
        f"{len(moved)} of {len(order)} rows of {of} belong to another sample than their place says: {told} (each "
        "sample was asked for alone, on a copy)", where.at(), SOURCE, bearing=Bearing.CAUSE,
        measured={"rows": len(order), "moved": len(moved), "order": tuple(order), "within": within})
