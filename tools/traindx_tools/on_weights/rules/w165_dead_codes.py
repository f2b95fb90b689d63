"""A codebook of which hardly any code is used any more, as its own counts say.

A codebook that is a moving average keeps for each code how often it was taken lately, and the sum of what was assigned
to it. The sums are the codes times the counts: by that relation the three tensors are known. Counts of codes that were
not taken decay by the same factor with each batch, so that a code a hundredth as frequent as chance was not taken for
hundreds of batches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen
from traindx_tools.rules import Rule, Threshold

_USED, _FEW, _MONOPOLY, _CODES = 0.01, 0.1, 0.5, 16

RULE = Rule(
    id="W165",
    name="dead-codes",
    title="Hardly any code of a codebook is used",
    severity=Severity.MEDIUM,
    sees="counts of a codebook that is a moving average, known by codes times counts being the sums beside them",
    matters="The bottleneck carries the logarithm of the codes that are used, and what comes after it sees only these.",
    alike=("a codebook after its first batches", "counts that are all as they began",
           "codes of which half are used: a codebook larger than the data needs"),
    confirm=("histogram of codes over one epoch of validation data", "the perplexity of codes, as the run logged it"),
    thresholds={
        "used": Threshold(_USED, "of the mean count", "a code below was not taken for hundreds of batches"),
        "few": Threshold(_FEW, "of the codes", "fewer are used (as T601)"),
        "monopoly": Threshold(_MONOPOLY, "of all that was assigned", "to one code, with as low a perplexity (as T601)"),
        "codes": Threshold(_CODES, "codes at least", "of fewer, one may well take half"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """Every codebook of the part."""
    for found in seen.weighted_sums:
        counts = found.counts()
        total = float(counts.sum())
        if len(counts) < _CODES or not np.isfinite(total) or total <= 0:
            continue
        shares = counts / total
        used = int((shares * len(counts) >= _USED).sum())
        taken = shares[shares > 0]
        perplexity = float(np.exp(-(taken * np.log(taken)).sum()))
        monopoly = float(shares.max()) >= _MONOPOLY and perplexity < _FEW * len(counts)
        if used >= _FEW * len(counts) and not monopoly:
            continue
        yield RULE.finding(
            f"{found.codes.name} in {seen.path} uses {used} of its {len(counts):,} codes: {found.count.name} is below "
            f"{_USED:.0%} of the mean count for all others (perplexity {perplexity:.1f}, the most used code takes "
            f"{float(shares.max()):.0%})",
            seen.where(found.count.name), seen.path, bearing=Bearing.SIGN,
            measured={"kind": "dead-codes", "name": found.count.name, "used": used, "size": len(counts),
                      "perplexity": round(perplexity, 2), "largest": round(float(shares.max()), 3)})
