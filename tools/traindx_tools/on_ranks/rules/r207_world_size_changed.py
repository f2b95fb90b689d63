"""A restart went on with another number of ranks.

Elastic launchers start again with the hosts that are left. With fewer ranks the global batch is smaller, a rate that
was chosen for it too large, an epoch has more steps, and samplers begin elsewhere: what changes in the curves from that
step on is no fault of the model. Starts are told by the ranks' own lines and by steps. Where the global batch size is
printed and stays the same, the restart made up for it: a remark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_ranks.logs.job import Job, Start, named
from traindx_tools.rules import Rule

RULE = Rule(
    id="R207",
    name="world-size-changed",
    title="A restart went on with another number of ranks",
    severity=Severity.HIGH,
    sees="The world size of each start, the ranks that are gone, and the global batch size where it is printed.",
    matters="Global batch, rate and the order of data are others from that step on.",
    alike=("A restart of the same size.", "An elastic job that keeps its global batch size."),
    confirm=("Compare global batch size, rate and steps an epoch before and after the restart.",),
)


def check(job: Job) -> Iterator[Finding]:
    """One finding for the last change."""
    for before, after in reversed(list(zip(job.starts, job.starts[1:], strict=False))):
        if before.world is not None and after.world is not None and before.world != after.world:
            yield _finding(job, before, after)
            return


def _finding(job: Job, before: Start, after: Start) -> Finding:
    gone, new = sorted(set(before.ranks) - set(after.ranks)), sorted(set(after.ranks) - set(before.ranks))
    kept = _batch(before) is not None and _batch(before) == _batch(after)
    one = next(iter(after.ranks.values()))
    who = f"; {named(gone)} {'is' if len(gone) == 1 else 'are'} gone" if gone else (
        f"; {named(new)} {'is' if len(new) == 1 else 'are'} new" if new else "")
    batch = f"; the global batch size stays {_batch(after)}" if kept else ""
    return RULE.finding(
        f"start {after.number} of {len(job.starts)} went on from step {one.told.first_step:g} with {after.world} "
        f"ranks in "
        f"place of {before.world}{who}{batch}", one.at(one.told.line, step=one.told.first_step), one.source,
        bearing=Bearing.COMPANION if kept else Bearing.SIGN, severity=Severity.LOW if kept else None,
        measured={"kind": "kept" if kept else "changed", "world_size": after.world, "before": before.world,
                  "ranks": tuple((gone or new)[:64]), "rank": (gone or new or [0])[0], "operation": "restart",
                  "step": one.told.first_step, "start": after.number})


def _batch(start: Start) -> str | None:
    told = Counter(r.told.settings["global_batch_size"][0] for r in start.ranks.values()
                   if "global_batch_size" in r.told.settings)
    return told.most_common(1)[0][0] if told else None
