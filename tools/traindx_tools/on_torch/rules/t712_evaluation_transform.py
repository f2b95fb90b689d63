"""Evaluated inputs differ from trained ones by a transform.

Statistics of each input, feature by feature, over the batches that a backward pass follows on and over those that are
evaluated. `kind`: "scaled" where one factor of four and more lies between the spreads of all features, "standardised"
where one side has mean 0 and deviation 1 and the other has not, "permuted" where the features fit in another order,
"ids-moved" where token ids fit after moving them, "other-ids" where they have little in common, "constant-features"
where features that vary in training do not in evaluation, though a random split would have left some (hypergeometric,
over all features), "noise-added" where the means are those of training and every feature alike has more variance.
"differs" says that numbers differ, and is a remark: data of
another origin do so too.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.rows import SOURCE, ModelRows
from traindx_tools.rows import relation as relations
from traindx_tools.rows.profile import generates, together
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="T712",
    name="evaluation-transform",
    title="Evaluation inputs were made by another transform than training inputs",
    severity=Severity.HIGH,
    sees="mean, spread and range of each feature, and counts of token ids, of trained and of evaluated batches",
    matters="the model is judged on inputs that it was never trained on: its score says nothing of what it learned",
    alike=("features that are rare: a random split leaves them out of a small evaluation (they are counted as luck)",
           "a test of robustness that adds noise on purpose",
           "an evaluation on another domain on purpose: it differs, and seldom by one factor in all features",
           "augmentation in training alone: it changes spreads by less than a factor of two"),
    confirm=("print(x.mean(0), x.std(0), x.min(), x.max())  # of one training and of one evaluation batch",
             "Send a training row through the evaluation's transform: it comes out as another one."),
    thresholds={
        "factor": Threshold(relations.FACTOR, "times the spread, in all features", "domains differ by less"),
        "shift": Threshold(relations.SHIFT, "standard deviations", "below it nothing is said"),
        "noise": Threshold(relations.NOISE, "times what batches differ by", "beyond sampling"),
    },
)
_SEVERITY = {"differs": Severity.INFO, "other-ids": Severity.LOW, "constant-features": Severity.MEDIUM,
             "noise-added": Severity.MEDIUM}
_BEARING = {"differs": Bearing.COMPANION, "other-ids": Bearing.SIGN, "constant-features": Bearing.SIGN,
            "noise-added": Bearing.SIGN}


def check(seen: ModelRows) -> Iterator[Finding]:
    """At most one finding for each input of a model."""
    for role, name in seen.profiles:
        if role != "trained":
            continue
        trained, evaluated = (together(seen.profiles.get((r, name), ())) for r in ("trained", "evaluated"))
        if trained is None or evaluated is None or generates(seen.profiles["evaluated", name]):
            continue
        found = relations.relation(trained, evaluated)
        if found is None:
            continue
        yield RULE.finding(
            f"evaluation inputs '{name}' of {seen.model} {found.text}; {trained.batches} training and "
            f"{evaluated.batches} evaluation batches were measured", seen.where, SOURCE,
            bearing=_BEARING.get(found.kind, Bearing.CAUSE), severity=_SEVERITY.get(found.kind, RULE.severity),
            measured={"kind": found.kind, "input": name, **found.measured})
