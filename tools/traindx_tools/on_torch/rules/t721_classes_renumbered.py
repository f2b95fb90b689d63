"""Evaluated labels are answered with one other class each: the classes are numbered otherwise.

The class that the model names for each evaluated row is compared with the row's label. Where most rows of a label get
one other class, another one for each label, the model knows the classes and calls them otherwise: the evaluation's
labels were numbered anew (`kind`: "evaluation", at the end of the training), or the weights that were loaded number
them otherwise than this run's labels (`kind`: "loaded", in an evaluation before the first step).
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.rows import SOURCE, ModelRows
from traindx_tools.rows import relabelled
from traindx_tools.rows.relabelled import Relabelled
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="T721",
    name="classes-renumbered",
    title="Evaluated labels are answered with one other class each",
    severity=Severity.HIGH,
    sees="the class that the model names for each evaluated row against the row's label, in the first and the last "
         "evaluation",
    matters="the metric counts as wrong what is right; the label map, vocabulary or class list of one side is another",
    alike=("a model that confuses classes: several labels get one answer", "two classes that are hard to tell apart"),
    confirm=("Print the class list, label map or vocabulary of both sides.",
             "Rename the answers as the finding says and compute the metric again."),
    thresholds={
        "certain": Threshold(relabelled.CERTAIN, "of a label's rows get one other class", "confusion is shared out"),
        "gain": Threshold(relabelled.GAIN, "of all rows that are right after renaming only", "chance gives none"),
    },
)


def check(seen: ModelRows) -> Iterator[Finding]:
    """At most one finding."""
    early = seen.answered.at_first() if seen.answered.first_step == 0 else None
    late = seen.answered.at_last() if seen.step else None
    found, kind = (late, "evaluation") if late is not None else (early, "loaded")
    if found is not None:
        yield _told(seen, found, kind)


def _told(seen: ModelRows, found: Relabelled, kind: str) -> Finding:
    why = ("the labels of the evaluation are numbered in another order than those of the training (label map, class "
           "list or vocabulary)" if kind == "evaluation" else
           "the loaded weights number the classes in another order than the labels of this run")
    return RULE.finding(
        f"the model answers evaluated labels with one other class each ({found.said}; {len(found.pairs)} of "
        f"{found.classes} classes, {found.rows} rows): {found.before:.1%} are right, and {found.after:.1%} after "
        f"renaming: {why}", seen.where, SOURCE, bearing=Bearing.CAUSE,
        measured={"kind": kind, "before": found.before, "after": found.after, "classes": found.classes,
                  "moved": len(found.pairs), "rows": found.rows, "how": "permuted"})
