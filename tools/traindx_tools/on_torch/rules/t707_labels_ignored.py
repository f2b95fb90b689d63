"""No label of a batch counts: all carry the index that the loss ignores.

The mean over no labels is 0/0: the loss is NaN in that step, or 0 where somebody guards it, and nothing is learned from
the batch. Prompts that fill the whole length, a mask that is applied twice or a wrong padding id do that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.batches import SOURCE, LabelsSeen, at
from traindx_tools.rules import Rule, Threshold

NEARLY = 0.99

RULE = Rule(
    id="T707",
    name="labels-ignored",
    title="All labels of a batch are ignored",
    severity=Severity.HIGH,
    sees="the share of labels with the ignored index in the target of the cross entropy, in measured steps",
    matters="the loss of such a batch is NaN or 0, and the share of the data that teaches is smaller than it seems",
    alike=("masked language models: 85 % ignored on purpose", "instruction tuning: prompts ignored on purpose"),
    confirm=("print((labels != -100).sum(-1))",),
    thresholds={"nearly": Threshold(NEARLY, "of the labels, in the median", "one in a hundred counts: low, a remark")},
)


def check(seen: Sequence[LabelsSeen], rank: int = 0) -> Iterator[Finding]:
    """At most one finding."""
    empty = [s for s in seen if s.ignored >= 1.0]
    median = sorted(s.ignored for s in seen)[len(seen) // 2] if seen else 0.0
    if empty:
        yield RULE.finding(
            f"all labels are ignored in {len(empty)} of {len(seen)} measured steps, first at step {empty[0].step} "
            f"(median share {median:.0%})", at(empty[0].step, rank), SOURCE, bearing=Bearing.CAUSE,
            measured={"kind": "all", "share": len(empty) / len(seen), "median": median})
    elif median >= NEARLY and len(seen) >= 3:
        yield RULE.finding(
            f"{median:.1%} of the labels are ignored (median of {len(seen)} measured steps)",
            at(seen[0].step, rank, None, seen[-1].step), SOURCE, bearing=Bearing.CAUSE, severity=Severity.LOW,
            measured={"kind": "most", "share": 0.0, "median": median})
