"""A distributed sampler is never told the epoch.

`DistributedSampler` shuffles with a generator seeded by `seed + epoch`, and `epoch` changes only by `set_epoch`.
Without the call every epoch has the same order and every rank sees the same shard of the data for the whole run.
Trainers of Lightning, Accelerate and transformers call it themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, at
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import Thing, truth
from traindx_tools.rules import Rule

RULE = Rule(
    id="C140",
    name="sampler-epoch-not-set",
    title="The sampler is never told the epoch",
    severity=Severity.MEDIUM,
    sees="A DistributedSampler that shuffles, in a loader that is read in several epochs, without set_epoch.",
    matters="The same order in every epoch: weaker generalisation, a loss with the period of an epoch.",
    alike=("a loader without shuffling",),
    confirm=("print the first indices of two epochs",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every loop over a loader with such a sampler."""
    if any(True for _ in project.calls("set_epoch")):
        return
    for loop in project.training_loops:
        for block in {id(b): b for p in loop.backwards for b in p.path if b.kind == "loop"}.values():
            loader = block.subject
            outer = any(b.kind == "loop" and b is not block for p in loop.backwards for b in _above(p.path, block))
            if not outer or not isinstance(loader, Thing) or loader.short != "DataLoader":
                continue
            sampler = loader.kwargs.get("sampler")
            if not isinstance(sampler, Thing) or sampler.short != "DistributedSampler" or loader.state.get("prepared"):
                continue
            if truth(sampler.argument(3, "shuffle")) is not False:
                yield _finding(project, sampler, block)


def _above(path: tuple[Block, ...], block: Block) -> tuple[Block, ...]:
    return path[: path.index(block)] if block in path else ()


def _finding(project: Project, sampler: Thing, block: Block) -> Finding:
    return RULE.finding(
        f"The DistributedSampler made at {sampler.site} is read again in every epoch at line {block.line} and "
        "set_epoch() is never called: every epoch has the same order",
        at(sampler.site, project),
        sampler.site.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "set_epoch", "loop_line": block.line},
        patch=order.epoch_set(block.file, block.node),
    )
