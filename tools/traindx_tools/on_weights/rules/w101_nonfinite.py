"""A weight, a buffer or a state of the optimizer holds NaN or inf.

Every later step multiplies with it. Masks are left alone (a buffer of 0 and -inf, a range observer of +inf and -inf):
there infinity is meant. A single +inf of float16 beside tensors of the same part is a count that was above 65,504, the
largest number of the type (IEEE 754-2019, binary16). The statement says how many values, and where the first one lies.
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
        if (stats.nan or stats.inf) and (not _is_mask(stats) or _is_overflow(seen, stats)):
            yield _finding(seen, stats)


def _is_mask(stats: Stats) -> bool:
    """Whether infinity stands for "never": no NaN, and beside it nothing or zeros."""
    finite = stats.sample[np.isfinite(stats.sample)]
    return stats.nan == 0 and (stats.inf == stats.size or (stats.inf > 1 and not finite.any() and stats.largest == 0))


def _is_overflow(seen: Seen, stats: Stats) -> bool:
    """Whether a lone +inf stands in the narrow type of the part that it belongs to, and the other values are finite."""
    part = stats.name.rpartition(".")[0]
    if stats.size != 1 or stats.nan or str(stats.tensor.dtype) != "float16" or not part or not (stats.sample > 0).all():
        return False
    beside = [s for s in seen.floats if s is not stats and s.name.rpartition(".")[0] == part]
    return any(s.size > 1 for s in beside) and all(
        s.finite == s.size and str(s.tensor.dtype) == "float16" for s in beside)


def _finding(seen: Seen, stats: Stats) -> Finding:
    kinds = [f"{stats.nan:,} NaN"] * bool(stats.nan) + [f"{stats.inf:,} inf"] * bool(stats.inf)
    index = np.unravel_index(stats.first_bad, stats.tensor.shape) if stats.tensor.shape else ()
    place = f"[{', '.join(str(int(i)) for i in index)}]"
    said = f"holds {' and '.join(kinds)} among {stats.size:,} values, the first at {place}"
    if stats.size == 1 and str(stats.tensor.dtype) == "float16":
        said = (f"is {'NaN' if stats.nan else 'inf'}: float16 holds no number above 65,504, a larger one (a count, a "
                "sum) overflows when it is stored in half precision, and what divides by it or averages with it stops")
    return RULE.finding(
        f"{stats.name} in {seen.path} {said}",
        seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": "loaded", "name": stats.name, "nan": stats.nan, "inf": stats.inf, "values": stats.size,
                  "first": place})


def as_result(finding: Finding) -> Finding:
    """The same of a file that the run's code writes and nowhere reads: what went wrong before, and no cause."""
    return replace(finding, bearing=Bearing.COMPANION, severity=Severity.MEDIUM,
                   statement=f"{finding.statement}; the code writes this file and reads it nowhere: the run made it so",
                   measured={**finding.measured, "kind": "result"})
