"""What is evaluated differs from what a step is trained on by a transform.

Statistics of the largest array of each batch, feature by feature. The function that is differentiated trains; one that
takes the same parameters and is not, evaluates. `kind` as of T712: "scaled", "standardised", "permuted", "ids-moved",
"other-ids", "constant-features", "noise-added"; "differs" is a remark, because data of another origin do so too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rows import relation as relations
from traindx_tools.rows.profile import Profile, generates, together
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J802",
    name="jax-evaluation-transform",
    title="Evaluation inputs were made by another transform than training inputs",
    severity=Severity.HIGH,
    sees="mean, spread and range of each feature, and counts of token ids, of trained and of evaluated batches",
    matters="the model is judged on inputs that it was never trained on: its score says nothing of what it learned",
    alike=("features that are rare: a random split leaves them out of a small evaluation (they are counted as luck)",
           "a test of robustness that adds noise on purpose",
           "an evaluation on another domain on purpose: it differs, and seldom by one factor in all features",
           "augmentation in training alone: it changes spreads by less than a factor of two"),
    confirm=("print(x.mean(0), x.std(0), x.min(), x.max())  # of one training and of one evaluation batch",),
    thresholds={"factor": Threshold(relations.FACTOR, "times the spread, in all features", "domains differ by less")},
)
_REMARKS = {"differs": (Severity.INFO, Bearing.COMPANION), "other-ids": (Severity.LOW, Bearing.SIGN),
            "constant-features": (Severity.MEDIUM, Bearing.SIGN), "noise-added": (Severity.MEDIUM, Bearing.SIGN)}


def check(function: str, place: tuple[str, int] | None, trained: Sequence[Profile],
          evaluated: Sequence[Profile]) -> Iterator[Finding]:
    """At most one finding for the state of a function."""
    one, other = together(trained), together(evaluated)
    able = one is not None and other is not None and not generates(evaluated)
    found = relations.relation(one, other) if able and one is not None and other is not None else None
    if found is None or one is None or other is None:
        return
    severity, bearing = _REMARKS.get(found.kind, (RULE.severity, Bearing.CAUSE))
    file, line = place or (None, None)
    yield RULE.finding(
        f"what is evaluated with the state of {function} ('{other.name}'): the inputs {found.text}; {one.batches} "
        f"training and {other.batches} evaluation batches were measured",
        Location(file=file, line=line, module=function), "the running process", bearing=bearing, severity=severity,
        measured={"kind": found.kind, "input": other.name, "function": function, **found.measured})
