"""Class weights that grow with the count of the class.

`weight` of a cross entropy multiplies the loss of each class. Rare classes need the large weights: the inverse of the
counts, or `total / (classes * count)`. Given the counts themselves (`torch.bincount(y).float()`, `value_counts()`, a
frequency), the frequent class counts even more and the rare one vanishes. `pos_weight` of a binary loss is the number
of negatives over the number of positives, not the other way round. A weighted sampler whose weights are the counts
draws the frequent class with the square of its frequency.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.class_counts import Counts
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C266",
    name="weights-are-counts",
    title="Class weights are the counts instead of their inverse",
    severity=Severity.HIGH,
    sees="What the weight or pos_weight of a loss, or the weights of a WeightedRandomSampler, are computed from.",
    matters="The frequent classes count more than without weights; the rare ones are not learned.",
    alike=("weights of 1 / count", "an imbalance without any weights"),
    confirm=("print(list(zip(counts, weights))): the largest weight belongs to the largest count",),
)
_BY_CLASS = {"CrossEntropyLoss": 0, "NLLLoss": 0, "cross_entropy": 2, "nll_loss": 2}
_BINARY = ("BCEWithLogitsLoss", "binary_cross_entropy_with_logits")


def check(project: Project) -> Iterator[Finding]:
    """Look at the weights of every loss and every weighted sampler."""
    codes = [syntax(f) for f in project.files]
    for code in codes:
        if "weight" not in code.file.text.lower():
            continue
        counts = Counts(codes, code)
        for call in code.calls(*_BY_CLASS):
            weight = argument(call, _BY_CLASS[last_name(call.func)], "weight")
            if weight is not None and "torch" in code.qualified(call.func) and counts.are(weight):
                yield _finding(code, call, weight, "weight", "grows with the number of samples of each class")
        for call in code.calls(*_BINARY):
            weight = argument(call, 99, "pos_weight")
            if weight is not None and counts.positives_over_negatives(weight):
                yield _finding(code, call, weight, "pos_weight", "is the positives over the negatives")
        for call in code.calls("WeightedRandomSampler"):
            weight = argument(call, 0, "weights")
            if weight is not None and counts.of_each_sample(weight):
                yield _finding(code, call, weight, "sampler", "grow with the number of samples of each class")


def _finding(code: Syntax, call: ast.Call, weight: ast.expr, kind: str, why: str) -> Finding:
    turned = "negatives over positives" if kind == "pos_weight" else "the inverse of the counts"
    return RULE.finding(
        f"The {'weights' if kind == 'sampler' else kind} {written(weight)[:60]} of {last_name(call.func)} at "
        f"{code.at(call)} {why}: rare classes need the large weights, {turned}",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind, "weights": written(weight)[:60]},
    )
