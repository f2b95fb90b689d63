"""Most units in front of a layer are zero for every sample.

Each layer's input is looked at in sampled steps: a unit that is exactly 0 in every row of every one of them is dead.
A ReLU whose input is negative for all data (a bias far below zero, a step that was too large, an initialisation that is
off) has a gradient of 0 as well and never comes back. Raw inputs are not judged: a border of black pixels is no unit.
Zeros that no rectifier made (a mask of a coupling layer, one-hot rows, a part that is routed elsewhere) are a remark.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.activations import SOURCE, Courses, listed
from traindx_tools.rules import Rule, Threshold

SHARE, MOST, STEPS, ROWS = 0.5, 0.9, 3, 128

RULE = Rule(
    id="T501",
    name="dead-units",
    title="Units are zero for every sample",
    severity=Severity.HIGH,
    sees="the input of each linear layer and convolution: units that are 0 in every sampled row",
    matters="a dead ReLU has no gradient: the weights in front of it and behind it are not trained",
    alike=("sparse activations: units that are zero often, and not always", "experts that no batch was routed to",
           "a layer that is switched off on purpose"),
    confirm=("Print the mean and the largest input of the activation over 20 batches.",
             "Replace ReLU by LeakyReLU, or set the biases to 0: the share falls."),
    thresholds={
        "share": Threshold(SHARE, "of a layer's units", "sagemaker-debugger: half of a layer"),
        "most": Threshold(MOST, "of a layer's units: high", "what is left cannot carry the task"),
        "rows": Threshold(ROWS, "sampled rows", "a rare unit shows within a hundred"),
    },
)


def check(seen: Courses) -> Iterator[Finding]:
    """One finding for all such layers; the worst is named first."""
    able = [c for c in seen.layers if c.kind == "layer" and c.units >= 4 and c.rows >= ROWS and len(c.steps) >= STEPS]
    dead = sorted((c for c in able if c.dead >= SHARE * c.units),
                  key=lambda c: (c.function != "relu", -c.dead / c.units))
    if not dead:
        return
    worst = dead[0]
    share = worst.dead / worst.units
    place = worst.after or worst.path
    rectified = any(c.function == "relu" for c in dead)
    yield RULE.finding(
        f"{worst.dead} of the {worst.units} units between {worst.after or 'the input'} and {worst.path} are 0 in all "
        f"{worst.rows} sampled rows of {len(worst.steps)} steps ({share:.0%}"
        f"{', after a ReLU' if worst.function == 'relu' else ''})"
        + (f"; so are most units in front of {listed([c.path for c in dead[1:]])}" if len(dead) > 1 else ""),
        worst.at(), SOURCE, bearing=Bearing.CAUSE,
        severity=Severity.INFO if not rectified else Severity.HIGH if share >= MOST else Severity.MEDIUM,
        measured={"share": round(share, 4), "dead": worst.dead, "units": worst.units, "module": place,
                  "layers": len(dead), "function": worst.function or "unknown"})
