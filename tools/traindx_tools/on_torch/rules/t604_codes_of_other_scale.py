"""The codes of a collapsed codebook lie far outside of what the encoder gives, or all in its middle.

Every encoder output then is nearest to the same few codes (the shortest of codes that are too long, or any of codes
that lie together), the others get no update, and resets by noise of the codes' own scale do not help. Told where the
codebook did collapse: a fresh table whose scale is off by itself often spreads within some hundred steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules import t601_codebook_collapse
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.codes.usage import Usage

FARTHEST = 8.0

RULE = Rule(
    id="T604",
    name="codes-of-other-scale",
    title="The codes have another scale than what they quantise",
    severity=Severity.HIGH,
    sees="spread of the codes over the spread of the encoder's outputs, at the first and the last look",
    matters="one code is nearest to everything: the codebook collapses at once and cannot recover",
    alike=("a fresh table that spreads as it trains: nothing is said of a codebook in use",
           "cosine codes: both sides are of length 1"),
    confirm=("print(codebook.std(), z.std()) at the first batch",
             "fit the table to encoder outputs (k-means on one batch) in a copy and count the codes again"),
    thresholds={"farthest": Threshold(FARTHEST, "times, either way", "k-means of the outputs gives 0.7 to 1")},
)


def check(path: str, usage: Usage, ratios: tuple[float, float], step: int, source: str, rank: int) -> Iterator[Finding]:
    """`ratios`: spread of the codes over that of the outputs, at the first and the last look."""
    if not list(t601_codebook_collapse.check(path, usage, step, source, rank)):
        return
    first, last = ratios
    if not (min(ratios) >= FARTHEST or max(ratios) <= 1 / FARTHEST):
        return
    size = f"{first:.3g} times as large as" if first > 1 else f"{1 / first:.3g} times as small as"
    yield RULE.finding(
        f"the codes of {path} were {size} the outputs of the encoder at the first batch (spread over spread; "
        f"{last:.3g} at step {step}), and {usage.used} of {usage.size} codes are used: every output is nearest to them",
        Location(module=path, step=step, rank=rank), source, bearing=Bearing.CAUSE,
        measured={"first": first, "last": last, "used": usage.used, "size": usage.size})
