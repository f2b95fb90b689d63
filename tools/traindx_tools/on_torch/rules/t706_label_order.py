"""Batches hold few classes at a time, or one class nearly always.

`kind`: "ordered" where a batch holds a third or less of the classes that a random draw of its size would hold, batch
after batch: the data is not shuffled, and the model learns one class and forgets the last; "constant" where there is
one label only; "imbalance" where one class has nine tenths of all labels. The last two are reported as low: labels of
one value are usual in contrastive losses, and rare classes may be what the task is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.batches import SOURCE, LabelsSeen, at
from traindx_tools.rules import Rule, Threshold

BATCHES, LABELS, SHARE, MAJORITY, MANY = 6, 8, 0.35, 0.9, 1000

RULE = Rule(
    id="T706",
    name="label-order",
    title="Batches hold few classes at a time",
    severity=Severity.HIGH,
    sees="the class labels of the measured batches, where there is one a sample",
    matters="each update undoes the one before: loss saws, accuracy is far below what single batches show",
    alike=("contrastive losses: label 0 always", "small batches of many classes: a random draw is compared"),
    confirm=("print([labels.unique() for _, labels in itertools.islice(loader, 5)])",),
    thresholds={
        "share": Threshold(SHARE, "of the classes that a random draw of this size holds", "arithmetic"),
        "majority": Threshold(MAJORITY, "of all labels", "a classifier that always says so is 90 % right"),
    },
)


def check(seen: Sequence[LabelsSeen], rank: int = 0) -> Iterator[Finding]:
    """At most one finding."""
    able = [s for s in seen if s.per_sample and s.valid >= LABELS and s.classes <= MANY]
    if len(able) < BATCHES:
        return
    overall: Counter[int] = Counter()
    for s in able:
        overall.update(s.counts)
    total = sum(overall.values())
    share = np.array(list(overall.values())) / total
    fill = [len(s.counts) / float((1 - (1 - share) ** s.valid).sum()) for s in able]
    top, count = overall.most_common(1)[0]
    first, last = able[0].step, able[-1].step
    measured = {"classes": able[0].classes, "seen": len(overall), "majority": round(count / total, 4)}
    if len(overall) >= 2 and float(np.median(fill)) <= SHARE + 0.2 * (len(overall) == 2) and _uneven(able):
        held = float(np.median([len(s.counts) for s in able]))
        yield RULE.finding(
            f"a batch of {able[0].valid} labels holds {held:g} classes (median of {len(able)} measured batches) where "
            f"a random draw would hold {held / float(np.median(fill)):.3g} of {len(overall)}: the data comes in the "
            "order of its classes", at(first, rank, None, last), SOURCE, bearing=Bearing.CAUSE,
            measured={"kind": "ordered", "held": held, **measured})
    elif len(overall) == 1:
        yield RULE.finding(f"every label of {len(able)} measured batches is {top}", at(first, rank, None, last), SOURCE,
                           bearing=Bearing.CAUSE, severity=Severity.LOW, measured={"kind": "constant", **measured})
    elif count / total >= MAJORITY:
        yield RULE.finding(
            f"class {top} has {count / total:.1%} of {total} labels in {len(able)} measured batches",
            at(first, rank, None, last), SOURCE, bearing=Bearing.CAUSE, severity=Severity.LOW,
            measured={"kind": "imbalance", **measured})


def _uneven(able: Sequence[LabelsSeen]) -> bool:
    """Whether batches differ in what they hold, and not all in the same way."""
    return len({max(s.counts, key=lambda k: s.counts[k]) for s in able}) >= 2
