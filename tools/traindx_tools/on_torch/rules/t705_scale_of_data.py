"""Inputs or targets have a scale that layers are not made for.

The input is measured where the first convolution or linear layer takes it, so that a division inside the model counts.
`kind`: "bytes" for values from 0 up to 255 that were never divided; "large" for a spread above 1000 (raw prices,
populations, time stamps); "target" for regression targets of such a spread, whose squared error is above a million.
Where a normalisation follows the layer at once the scale of its input does not matter in training, and the finding is
low.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.batches import SOURCE, TensorSeen, at
from traindx_tools.rules import Rule, Threshold

BYTE_HIGH, BYTE_MEAN, LARGE, STEPS = 100.0, 15.0, 1e3, 3

RULE = Rule(
    id="T705",
    name="scale-of-data",
    title="Inputs or targets are not normalised",
    severity=Severity.MEDIUM,
    sees="range, mean and spread of what the first layer takes, and of regression targets",
    matters="first activations and gradients are hundreds of times too large: divergence, or saturation at once",
    alike=("values that are divided inside the model: measured behind it", "a normalisation as the first layer"),
    confirm=("print(x.min(), x.max(), x.mean(), x.std())",),
    thresholds={
        "bytes": Threshold(BYTE_HIGH, "highest value, at most 255, none below 0, mean above 15", "8-bit pictures"),
        "large": Threshold(LARGE, "standard deviation", "initialisations assume a variance of about 1"),
    },
)


def check(inputs: Sequence[TensorSeen], targets: Sequence[TensorSeen] = (), rank: int = 0) -> Iterator[Finding]:
    """At most one finding for the input and one for the targets."""
    if len(inputs) >= STEPS and (kind := _kind(inputs)):
        yield _finding(kind, inputs, rank)
    if len(targets) >= STEPS and float(np.median([t.std for t in targets])) > LARGE:
        yield _finding("target", targets, rank)


def _kind(inputs: Sequence[TensorSeen]) -> str | None:
    low, high = min(t.low for t in inputs), max(t.high for t in inputs)
    mean, std = (float(np.median([getattr(t, k) for t in inputs])) for k in ("mean", "std"))
    per_row = int(np.prod(inputs[0].shape[1:])) if len(inputs[0].shape) > 1 else 0
    if low >= 0 and BYTE_HIGH < high <= 255.5 and mean > BYTE_MEAN and std > BYTE_MEAN and per_row >= 64:
        return "bytes"
    return "large" if np.isfinite(std) and std > LARGE else None


def _finding(kind: str, seen: Sequence[TensorSeen], rank: int) -> Finding:
    t = seen[0]
    mean, std = (float(np.median([getattr(s, k) for s in seen])) for k in ("mean", "std"))
    what = "the target of the regression" if kind == "target" else f"what {t.module} takes"
    why = ": pictures that were never divided by 255" if kind == "bytes" else ""
    harmless = t.normed and kind != "target"
    return RULE.finding(
        f"{what} lies between {min(s.low for s in seen):.4g} and {max(s.high for s in seen):.4g} with mean {mean:.4g} "
        f"and standard deviation {std:.4g} over {len(seen)} measured steps{why}",
        at(t.step, rank, t.module, seen[-1].step), SOURCE, bearing=Bearing.CAUSE,
        severity=Severity.LOW if harmless else RULE.severity,
        measured={"kind": kind, "mean": mean, "std": std, "low": min(s.low for s in seen),
                  "high": max(s.high for s in seen), "module": t.module, "normalised_next": t.normed})
