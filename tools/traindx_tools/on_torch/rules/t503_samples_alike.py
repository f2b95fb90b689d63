"""Activations are the same for every sample: the input no longer matters.

What a layer takes, or what the model returns, differs from sample to sample by less than a thousandth of its size.
`kind` is "output" where that is so of what the model returns, "layer" where it is so from some layer on: the first of
them is named, and what lies in front of it loses the input (dead or saturated units, a collapse of the representation,
a normalisation over the wrong axis, an input that is masked away).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.activations import SOURCE, Courses, LayerCourse
from traindx_tools.rules import Rule, Threshold

SPREAD, OUTPUT, STEPS, ROWS, SHARE = 1e-3, 1e-5, 3, 8, 0.8

RULE = Rule(
    id="T503",
    name="samples-alike",
    title="Activations are the same for every sample",
    severity=Severity.HIGH,
    sees="differences between the rows of what each layer takes and of what the model returns, relative to their size",
    matters="the model answers the same whatever it is shown: it can only learn the mean of the targets",
    alike=("a head that starts at zero: its output is the same in the first steps only",
           "an input that is the same in every row: see T704"),
    confirm=("print(model(x).std(0), model(x).abs().mean())",),
    thresholds={"spread": Threshold(SPREAD, "norm of the differences from the mean row over the norm", "the noise of "
                                    "bf16 is 4e-3 for one value, and averages out over a row"),
                "output": Threshold(OUTPUT, "the same of what the model returns", "answers may lie near a large mean"),
                "share": Threshold(SHARE, "of the sampled steps after the first two", "a head may start at zero")},
)


def check(seen: Courses) -> Iterator[Finding]:
    """At most one finding: the first layer from which on it is so, else the output."""
    able = [c for c in seen.layers if c.kind != "half" and len(c.steps) >= STEPS + 1 and c.fewest_rows >= ROWS]
    alike = [c for c in able if _alike(c)]
    if not alike:
        return
    first = alike[0]
    inner = [c for c in alike if c.kind == "layer"]
    kind = "layer" if inner and first is inner[0] else "output"
    what = f"what {first.path} takes" if kind == "layer" else f"what {first.path} returns"
    before = f" (after {first.after})" if first.after and kind == "layer" else ""
    yield RULE.finding(
        f"{what}{before} differs between samples by {first.late(first.spread):.2g} of its size in "
        f"{len(first.steps)} sampled steps, over at least {first.fewest_rows} rows each",
        first.at(), SOURCE, bearing=Bearing.CAUSE, severity=Severity.HIGH if kind == "layer" else Severity.MEDIUM,
        measured={"kind": kind, "spread": first.late(first.spread), "module": first.after or first.path,
                  "layers": len(alike), "from_start": bool(first.spread[0] < SPREAD)})


def _alike(c: LayerCourse) -> bool:
    later = c.spread[2:] if len(c.spread) > STEPS + 2 else c.spread[1:]
    size = c.rms[-len(later):]
    limit = OUTPUT if c.kind == "output" else SPREAD
    return bool(((later < limit) & (size > 0)).mean() >= SHARE and np.isfinite(later).all())
