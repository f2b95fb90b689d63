"""Hidden tanh or sigmoid units are saturated.

Nearly all of what a layer takes lies within a thousandth of the bounds of the tanh or sigmoid that made it: the slope
there is below 0.2 %, so that next to no gradient passes. Weights or inputs are too large in front of it. A sigmoid at
the end of a model may be certain, and is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.activations import SOURCE, Courses, listed
from traindx_tools.rules import Rule, Threshold

SHARE, MOST, STEPS = 0.8, 0.95, 3

RULE = Rule(
    id="T502",
    name="saturation",
    title="Hidden tanh or sigmoid units are saturated",
    severity=Severity.HIGH,
    sees="the share of a layer's input within 0.001 of the bounds of the tanh or sigmoid that made it",
    matters="the gradient through a saturated unit is next to zero: what lies before it stands still",
    alike=("binary codes that are pushed to the bounds on purpose", "a gate that is open or shut for good"),
    confirm=("Print the standard deviation of the input of the activation: far above 1.",
             "Scale the weights in front of it down by the root of the fan-in: the share falls."),
    thresholds={"share": Threshold(SHARE, "of the values, late in the run", "sagemaker-debugger counts a tanh as "
                                   "saturated beyond 9.5; the slope is below 0.2 % from 3.8 on")},
)


def check(seen: Courses) -> Iterator[Finding]:
    """One finding for all such layers."""
    able = [c for c in seen.layers if c.kind == "layer" and c.function in ("tanh", "sigmoid") and len(c.steps) >= STEPS]
    bad = sorted((c for c in able if c.late(c.saturated) >= SHARE), key=lambda c: -c.late(c.saturated))
    if not bad:
        return
    worst = bad[0]
    share = worst.late(worst.saturated)
    yield RULE.finding(
        f"{share:.0%} of what {worst.path} takes from a {worst.function} is saturated (median of the later of "
        f"{len(worst.steps)} sampled steps; {worst.saturated[0]:.0%} in the first)"
        + (f"; the same holds for {listed([c.path for c in bad[1:]])}" if len(bad) > 1 else ""),
        worst.at(), SOURCE, bearing=Bearing.CAUSE, severity=Severity.HIGH if share >= MOST else Severity.MEDIUM,
        measured={"share": round(share, 4), "first": round(float(worst.saturated[0]), 4), "module": worst.path,
                  "function": worst.function, "layers": len(bad), "from_start": bool(worst.saturated[0] >= SHARE)})
