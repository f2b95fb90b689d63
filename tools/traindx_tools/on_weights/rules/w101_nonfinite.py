"""A weight, a buffer or a state of the optimizer holds NaN or inf.

Every later step multiplies with it. Masks are left alone (a buffer of 0 and -inf, a range observer of +inf and -inf):
there infinity is meant. The statement says how many values, and where the first one lies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule

RULE = Rule(
    id="W101",
    name="nonfinite-weight",
    title="A stored tensor is not finite",
    severity=Severity.CRITICAL,
    sees="Every value of every floating tensor in the file.",
    matters="The first step with it is NaN, whatever the data are; training from it cannot recover.",
    alike=("masks that hold -inf on purpose", "the run's own result, which its code writes and never reads",
           "a batch that is not finite"),
    confirm=("load the tensor and call isfinite().all() on it", "look at the checkpoint before this one"),
)


def check(seen: Seen) -> Iterator[Finding]:
    """Every tensor that is not finite and no mask."""
    for stats in seen.floats:
        if (stats.nan or stats.inf) and not _is_mask(stats):
            yield _finding(seen, stats)


def _is_mask(stats: Stats) -> bool:
    """Whether infinity stands for "never": no NaN, and beside it nothing or zeros."""
    finite = stats.sample[np.isfinite(stats.sample)]
    return stats.nan == 0 and (stats.inf == stats.size or (stats.inf > 1 and not finite.any() and stats.largest == 0))


def _finding(seen: Seen, stats: Stats) -> Finding:
    kinds = [f"{stats.nan:,} NaN"] * bool(stats.nan) + [f"{stats.inf:,} inf"] * bool(stats.inf)
    index = np.unravel_index(stats.first_bad, stats.tensor.shape) if stats.tensor.shape else ()
    place = f"[{', '.join(str(int(i)) for i in index)}]"
    return RULE.finding(
        f"{stats.name} in {seen.path} holds {' and '.join(kinds)} among {stats.size:,} values, the first at {place}",
        seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": "loaded", "name": stats.name, "nan": stats.nan, "inf": stats.inf, "values": stats.size,
                  "first": place})


def as_result(finding: Finding) -> Finding:
    """The same of a file that the run's code writes and nowhere reads: what went wrong before, and no cause."""
    return replace(finding, bearing=Bearing.COMPANION, severity=Severity.MEDIUM,
                   statement=f"{finding.statement}; the code writes this file and reads it nowhere: the run made it so",
                   measured={**finding.measured, "kind": "result"})
