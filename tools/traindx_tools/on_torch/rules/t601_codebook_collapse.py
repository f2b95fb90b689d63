"""A codebook has collapsed: nearly every input gets one of a few codes.

Codes that are not chosen get no update and drift ever farther from what the encoder gives; the few that are chosen get
all of it. Measured over a window with at least ten assignments for each code, in which a codebook in use shows nearly
all of its codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.codes.usage import Usage

UTILISATION, PER_CODE, MONOPOLY = 0.1, 10, 0.5

RULE = Rule(
    id="T601",
    name="codebook-collapse",
    title="A codebook has collapsed",
    severity=Severity.HIGH,
    sees="a histogram of assigned codes over a window of at least ten assignments a code",
    matters="the bottleneck carries ln(used codes) instead of ln(codebook size)",
    alike=("the first hundred steps, before the codebook has spread: judged at the end of the run",
           "a codebook far larger than the data needs: used codes then number in the hundreds"),
    confirm=("histogram of codes over one epoch of validation data",
             "distance of unused codes from the nearest encoder output: it grows"),
    thresholds={
        "utilisation": Threshold(UTILISATION, "of the codes", "below 10 % is collapse (VQ debugging skills)"),
        "monopoly": Threshold(MONOPOLY, "of the assignments to one code", "half of everything says one thing"),
    },
)


def check(path: str, usage: Usage, step: int, source: str, rank: int) -> Iterator[Finding]:
    """A finding where less than a tenth of the codes is used, or one code takes at least half of all."""
    if usage.samples < PER_CODE * usage.size:
        return
    monopoly = usage.largest >= MONOPOLY and usage.perplexity < UTILISATION * usage.size
    if usage.utilisation >= UTILISATION and not monopoly:
        return
    yield RULE.finding(
        f"{path} uses {usage.used} of {usage.size} codes over {usage.samples:,} assignments up to step {step} "
        f"(perplexity {usage.perplexity:.1f}, the most used code takes {usage.largest:.0%})",
        Location(module=path, step=step, rank=rank), source, bearing=Bearing.CAUSE,
        measured={"used": usage.used, "size": usage.size, "perplexity": round(usage.perplexity, 2),
                  "largest": round(usage.largest, 3)})
