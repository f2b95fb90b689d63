"""One host or rank is slower than the others, and the job goes on at its pace.

In synchronous training every step ends when the slowest rank is done, so that a slow rank costs time and breaks
nothing: it is a remark, and never why a job hung. Compared are step or data-loading times that the ranks print.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_ranks.logs.job import Job, named
from traindx_tools.on_ranks.logs.parting import FEW
from traindx_tools.rules import Rule, Threshold

SLOWER = 1.25
NEEDED = 4

RULE = Rule(
    id="R208",
    name="rank-slower",
    title="One rank or host is slower than the others",
    severity=Severity.LOW,
    sees="Mean step and data-loading times by rank.",
    matters="All ranks wait for the slowest in every step.",
    alike=("Rank 0, which also evaluates, logs and saves.",),
    confirm=("nvidia-smi -q -d CLOCK,TEMPERATURE,ECC on that host; the same program with that host left out.",),
    thresholds={"slower": Threshold(SLOWER, "times the median rank", "clocks and temperatures differ by less"),
                "told": Threshold(NEEDED, "ranks", "of fewer the median is one of the slow ones")},
)


def check(job: Job) -> Iterator[Finding]:
    """At most one finding, of the last start."""
    start = job.last
    for name, words in (("data_time", "data loading"), ("step_time", "a step")):
        told = {r.rank: s.total / s.count for r in start.ranks.values()
                if (s := r.told.series.get(name)) is not None and s.count > 3}
        if len(told) < NEEDED:
            continue
        usual = float(np.median(list(told.values())))
        odd = tuple(r for r, v in told.items() if v > SLOWER * usual > 0)
        if not odd or len(odd) > max(1, FEW * len(told)):
            continue
        worst = max(odd, key=lambda r: told[r])
        rank = start.ranks[worst]
        yield RULE.finding(
            f"{words} takes {told[worst]:.3g} on {named(odd)}{f' ({rank.host})' if rank.host else ''} where the median "
            f"rank takes {usual:.3g}: the others wait for it, nothing "
            f"breaks", rank.at(rank.told.step_line), rank.source,
            bearing=Bearing.COMPANION,
            measured={"metric": name, "ranks": odd[:64], "rank": worst, "host": rank.host, "value": told[worst],
                      "usual": usual, "times": told[worst] / usual, "seen": len(told)})
        return
