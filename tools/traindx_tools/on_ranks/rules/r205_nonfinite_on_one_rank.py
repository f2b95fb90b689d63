"""A loss is NaN or infinite on few ranks first; the others follow a step later, by the gradients that they share.

Ranks of a data-parallel job see different data. A loss that is not finite on one rank at a step at which it is finite
on the others comes from that rank's batch, device or weights, and the all-reduce spreads it. A loss that is not finite
on all ranks at the same step is none of one rank's and is left to the rules for curves.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_ranks.logs.job import Job, Start, named
from traindx_tools.on_ranks.logs.parting import FEW
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="R205",
    name="nonfinite-on-one-rank",
    title="The loss is not finite on one rank first",
    severity=Severity.CRITICAL,
    sees="The first step at which the loss of each rank is NaN or infinite.",
    matters="The batch or the device of that rank is the place to look; after the all-reduce every rank is spoiled.",
    alike=("A loss that is not finite on all ranks at once.", "A loss that is reduced before it is printed."),
    confirm=("Print the ids of the batch of that rank at that step, and check it for NaN and for labels out of range.",
             "Run the same batch on another device: a fault of the hardware stays behind."),
    thresholds={"few": Threshold(FEW, "share of the ranks", "more is no single rank's")},
)


def check(job: Job) -> Iterator[Finding]:
    """At most one finding, of the last start in which it is so."""
    for start in reversed(job.starts):
        if (found := _of(start)) is not None:
            yield found
            return


def _of(start: Start) -> Finding | None:
    bad = {r.rank: r.told.bad["loss"] for r in start.ranks.values() if "loss" in r.told.bad}
    telling = sum(1 for r in start.ranks.values() if "loss" in r.told.series or "loss" in r.told.bad)
    if not bad or telling < 2:
        return None
    first = min(step for step, _, _ in bad.values())
    odd = tuple(sorted(r for r, (step, _, _) in bad.items() if step == first))
    if len(odd) > max(1, FEW * telling) or len(odd) == telling:
        return None
    rank, (_, line, text) = start.ranks[odd[0]], bad[odd[0]]
    later = sorted(step for r, (step, _, _) in bad.items() if r not in odd)
    others = (f"{len(later):,} of the other {telling - len(odd):,} ranks follow from step {later[0]:g} on" if later else
              f"it stays finite on the other {telling - len(odd):,} ranks")
    host = f" on {rank.host}" if rank.host and len(odd) == 1 else ""
    return RULE.finding(
        f"the loss of {named(odd)}{host} is not finite at step {first:g} (`{text[:100]}`); {others}",
        rank.at(line, text, first), rank.source, bearing=Bearing.CAUSE,
        measured={"kind": "nonfinite", "metric": "loss", "ranks": odd[:64], "rank": odd[0], "host": rank.host,
                  "operation": "forward", "step": first, "followed": len(later), "seen": telling})
