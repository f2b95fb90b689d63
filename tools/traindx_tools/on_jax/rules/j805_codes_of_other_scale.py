"""The codes of a collapsed codebook lie far outside of what the encoder gives, or all in its middle.

Every vector then is nearest to the same few codes, the others get no update, and the codebook cannot recover. Told
where few codes are chosen: a fresh table whose scale is off by itself often spreads within some hundred steps. The
look-up is found in the compiled step by what it does, and a part of the step is computed once more for it; the twin of
T604.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

FARTHEST, UTILISATION, PER_CODE, MONOPOLY = 8.0, 0.1, 10, 0.5

RULE = Rule(
    id="J805",
    name="jax-codes-of-other-scale",
    title="The codes have another scale than what they quantise",
    severity=Severity.HIGH,
    sees="spread of the codes over that of the vectors whose nearest code a step takes, early and late, and the codes",
    matters="one code is nearest to everything: the codebook collapses at once and cannot recover",
    alike=("a fresh table that spreads as it trains: nothing is said of a codebook in use",
           "codes and vectors of length 1: both have one scale",
           "a classifier whose best class is counted: no rows are taken"),
    confirm=("print codebook.std() and z.std() at the first batch with jax.debug.print",
             "fit the table to encoder outputs (k-means on one batch) in a copy and count the codes again"),
    thresholds={"farthest": Threshold(FARTHEST, "times, either way", "k-means of the outputs gives 0.7 to 1"),
                "utilisation": Threshold(UTILISATION, "of the codes", "below 10 % is collapse"),
                "samples": Threshold(PER_CODE, "choices for each code", "a codebook in use shows nearly all")},
)


@dataclass(frozen=True)
class Codes:
    """One table. `ratios`: spread of the codes over that of the vectors, at the first and the last look; `used`,
    `largest` (share), `samples` at the last."""

    function: str
    table: str
    size: int
    ratios: tuple[float, float]
    used: int
    largest: float
    samples: int
    call: int
    file: str | None = None
    line: int | None = None


def check(one: Codes) -> Iterator[Finding]:
    """The finding for a table."""
    collapsed = one.used < UTILISATION * one.size or one.largest >= MONOPOLY
    apart = min(one.ratios) >= FARTHEST or max(one.ratios) <= 1 / FARTHEST
    if one.samples < PER_CODE * one.size or not collapsed or not apart:
        return
    first, last = one.ratios
    size = f"{first:.3g} times as large as" if first > 1 else f"{1 / first:.3g} times as small as"
    yield RULE.finding(
        f"the codes of {one.table} in {one.function} were {size} the vectors that they quantise at the first look "
        f"(spread over spread; {last:.3g} at call {one.call}), and {one.used} of {one.size} codes are chosen",
        Location(file=one.file, line=one.line, module=one.table), "the running process", bearing=Bearing.CAUSE,
        measured={"first": first, "last": last, "used": one.used, "size": one.size})
