"""The batch is far from the gradient's noise scale: a remark about efficiency, never a fault.

The simple noise scale B is the batch size at which the noise of the gradient is as large as the gradient. A step with a
batch of B samples makes half the progress that a step with endless data would make; far above it, more samples hardly
help, far below it, the step follows mostly noise and a larger batch shortens the run almost in proportion. The scale is
small in the beginning and grows while the loss falls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.measures.noise_scale import NoiseScale
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: noise-scale"
FAR, PAIRS = 10.0, 12

RULE = Rule(
    id="T209",
    name="noise-scale",
    title="The batch is far from the gradient's noise scale",
    severity=Severity.INFO,
    sees="gradient norms of one micro-batch against those of the accumulated or averaged gradient",
    matters="far above the scale samples are wasted; far below it steps are mostly noise",
    alike=("the first steps: the scale is smallest there",
           "a batch whose rows repeat each other: the scale looks smaller"),
    confirm=("`gradient_noise_scale(model, loss, batches)` at several checkpoints",),
    thresholds={
        "far": Threshold(FAR, "times", "McCandlish et al. 2018, 2.3: a step's progress is 1 / (1 + scale / batch), "
                         "91 % and 9 % at a factor of ten"),
        "pairs": Threshold(PAIRS, "measured steps", "fewer leave the ratio open by a factor of two"),
    },
)


def check(noise: NoiseScale, step: int = 0, rank: int = 0) -> Iterator[Finding]:
    """At most one remark; none where the scale is not known."""
    if noise.pairs < PAIRS or not noise.known or not math.isfinite(noise.batch):
        return
    scale, batch = noise.scale, noise.batch
    progress = batch / (batch + scale)
    if FAR * scale < batch:
        kind, what = "far-above", "a smaller batch would make nearly as much progress in a step"
    elif batch * FAR < scale:
        kind, what = "far-below", "steps follow mostly noise: a larger batch shortens the run almost in proportion"
    else:
        return
    yield RULE.finding(
        f"the gradient's noise scale is about {scale:.2g} samples and a step takes {batch:g}: it makes "
        f"{100 * progress:.0f} % of the progress of a step without noise; {what}", Location(step=step, rank=rank),
        SOURCE, bearing=Bearing.COMPANION, measured={"kind": kind, "scale": float(f"{scale:.3g}"), "batch": batch,
                                             "progress": round(progress, 3), "pairs": noise.pairs})
