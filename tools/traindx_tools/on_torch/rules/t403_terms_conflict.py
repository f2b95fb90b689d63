"""Two terms of the loss pull the shared parameters in opposite directions.

The cosine of their gradients is strongly negative at every look: what one step gains for one term it loses for the
other, and the sum stands still although both terms have gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

COSINE, LOOKS = -0.5, 3

RULE = Rule(
    id="T403",
    name="terms-conflict",
    title="Two terms pull against each other",
    severity=Severity.LOW,
    sees="gradients of each term on the parameters that several terms reach, at sampled steps",
    matters="progress of one is undone by the other",
    alike=("a rate-distortion balance near its optimum, where terms oppose by design",),
    confirm=("train with each term alone: each falls",),
    thresholds={"cosine": Threshold(COSINE, "of two gradients", "random directions in many dimensions have about 0; "
                                    "gradient surgery (PCGrad) acts below 0")},
)


def check(looks: Sequence[tuple[int, Mapping[tuple[str, str], float]]], places: Mapping[str, tuple[str, int]],
          source: str, rank: int) -> Iterator[Finding]:
    """`looks`: (step, cosine by pair of terms)."""
    if len(looks) < LOOKS:
        return
    for pair in looks[-1][1]:
        seen = [cosines[pair] for _, cosines in looks[-LOOKS:] if pair in cosines]
        if len(seen) == LOOKS and all(c <= COSINE for c in seen):
            file, line = places.get(pair[0], ("", 0))
            yield RULE.finding(
                f"the gradients of {pair[0]} and {pair[1]} on the shared parameters have a cosine of {seen[-1]:.2f} "
                f"at step {looks[-1][0]} and below {COSINE} at the last {LOOKS} looks",
                Location(file=file or None, line=line or None, step=looks[-1][0], rank=rank), source,
                bearing=Bearing.SIGN, measured={"first": pair[0], "second": pair[1],
                                                            "cosine": round(seen[-1], 3)})
