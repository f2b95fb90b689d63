"""The log-probability ratio is not 1 before the first update.

Before the policy has changed, recomputing the log-probabilities of sampled tokens must give what the sampler gave:
the ratio is 1, the KL 0. Where it is not, the two sides differ in arguments (temperature, padding, position ids), in
casts, in weights (a stale or swapped copy), or in the noise or scheduler state; importance sampling then corrects for
a difference that the update did not make, and training collapses or stands still.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

FINE, COARSE = 1e-3, 2e-2

RULE = Rule(
    id="T952",
    name="log-prob-ratio",
    title="The log-prob ratio is not 1 before the first update",
    severity=Severity.CRITICAL,
    sees="log-probabilities of the same tokens from the sampler and from the trainer, before any optimizer step",
    matters="every later ratio, clip and KL starts from a wrong zero",
    alike=("rounding of two engines in bfloat16: a mean of some 1e-3 to 1e-2 without a direction",
           "after the first update the ratio is meant to move"),
    confirm=("`explain_logits(a, b)` on one batch: temperature, a shift by one token, truncation",
             "`compare(trainer_model, sampler_model, batch)`: the first layer that parts"),
    thresholds={
        "float32": Threshold(FINE, "mean |log ratio|", "a hundred times the rounding of a float32 log-softmax"),
        "bfloat16 or float16": Threshold(COARSE, "mean |log ratio|", "bfloat16's relative step is 0.8 %"),
    },
)


def check(gap: Any, step: int, source: str) -> Iterator[Finding]:
    """`gap`: tokens, mean_abs, largest, mean, not_finite, coarse. Nothing where the mean is within its threshold."""
    bound = COARSE if gap.coarse else FINE
    if gap.mean_abs <= bound and not gap.not_finite:
        return
    bad = f"; {gap.not_finite} of them are not finite" if gap.not_finite else ""
    lean = "one-sided" if abs(gap.mean) > 0.8 * gap.mean_abs else "both ways"
    yield RULE.finding(
        f"mean |log ratio| is {gap.mean_abs:.3g} over {gap.tokens} tokens before the first update (largest "
        f"{gap.largest:.3g}, {lean}; expected below {bound:g}){bad}", Location(step=step), source,
        bearing=Bearing.CAUSE, measured={"mean_abs": gap.mean_abs if gap.mean_abs < 1e308 else "inf",
                                            "lean": lean, "not_finite": gap.not_finite})
