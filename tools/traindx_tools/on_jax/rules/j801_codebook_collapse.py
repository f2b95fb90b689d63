"""Only a few codes of a codebook are in use, measured inside jit.

`measures.codes` counts the codes of a batch on the device, and `measures.report` sends the numbers to the run's file
once in an interval. A codebook has collapsed where in a row of reports its perplexity is below a tenth of its size.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J801",
    name="jax-codebook-collapse",
    title="A codebook has collapsed",
    severity=Severity.HIGH,
    sees="the perplexity of the codes that a step reports",
    matters="the decoder sees a handful of symbols whatever the input is",
    alike=("the first steps, before codes have spread",),
    confirm=("plot codebook_used over steps",),
    thresholds={"share": Threshold(0.1, "of the codebook's size", "ten times fewer codes than were paid for"),
                "reports": Threshold(5, "reports in a row", "one batch may be short of variety")},
)

SHARE, REPORTS, SMALLEST = 0.1, 5, 32


def check(name: str, perplexity: float, size: float, step: int, reports: int) -> Iterator[Finding]:
    """The finding where the perplexity stays below its share of the size; nothing otherwise."""
    if reports < REPORTS or size < SMALLEST or perplexity >= SHARE * size:
        return
    yield RULE.finding(
        f"{name}: the codes in use have a perplexity of {perplexity:.1f} of {size:.0f} at step {step}, in {reports} "
        "reports in a row", Location(step=step, module=name), "the running process", bearing=Bearing.SIGN,
        measured={"perplexity": perplexity, "size": size, "reports": reports})
