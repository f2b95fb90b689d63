"""Validation is as good as training, and the test is far worse.

Two held-out sets drawn alike have alike scores. Where validation equals training and the test lies ten points lower,
the validation set is not held out: it overlaps with the training set, or choices were made on it. A test set of
another origin looks the same, which only a look at the data tells apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import tail
from traindx_tools.on_logs.curves.learning import accuracy, is_reinforcement, number
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

GAP, SAME, ENOUGH = 0.1, 0.03, 4

RULE = Rule(
    id="L221",
    name="test-below-validation",
    title="The test is far below a validation that equals training",
    severity=Severity.MEDIUM,
    sees="Accuracies of training, validation and test at the end of the run.",
    matters="Every choice that was made by the validation score was made by the training score.",
    alike=("A test set of another origin or time.", "A test set of a few dozen samples: its score scatters."),
    confirm=("traindx data on the folder of the splits: it counts the samples that they share.",
             "Hash the samples of both sets and intersect."),
    thresholds={
        "gap": Threshold(GAP, "fraction", "beyond the scatter of a test set of some hundred samples"),
        "same": Threshold(SAME, "fraction", "training minus validation: a held-out set of a fitting model lies lower"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    train, held_out, test = (accuracy(run, g) for g in ("train", "validation", "test"))
    if train is None or held_out is None or test is None or is_reinforcement(run):
        return
    if len(train) < ENOUGH or len(held_out) < ENOUGH or not len(test):
        return
    seen, kept, told = tail(train.values), tail(held_out.values), float(test.values[-1])
    if kept - told < GAP or seen - kept > SAME:
        return
    yield RULE.finding(
        f"test accuracy is {number(told)} while validation accuracy is {number(kept)}, the same as in training "
        f"({number(seen)})", test.series.at(len(test.series) - 1), test.series.source,
        bearing=Bearing.SIGN,
        measured={"test": told, "validation": kept, "train": seen, "gap": kept - told})
