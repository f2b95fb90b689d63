"""The wrapped model runs in one process only.

A forward pass through DistributedDataParallel is a collective: it prepares the reduction of gradients and broadcasts
buffers (BatchNorm's statistics) from rank 0. Under `if rank == 0` the others never join, and the job hangs or the
buffers go out of step. An evaluation on rank 0 uses `model.module`.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.ranks import tests_rank
from traindx_tools.on_code.trace import Block, Place, walk
from traindx_tools.on_code.values import Thing, unwrap

(RULE,) = pages("ranks", ("C200",))


_WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel")


def check(project: Project) -> Iterator[Finding]:
    """Look at every call of a wrapped model."""
    seen: set[int] = set()
    if not any(isinstance(e.receiver, Thing) and e.receiver.short in _WRAPPERS for e in project.calls("__call__")):
        return
    for root in project.roots:
        for place in walk(root, frozenset({"__call__"})):
            model = place.event.receiver
            if not isinstance(model, Thing) or model.short not in _WRAPPERS or id(place.event.node) in seen:
                continue
            block = next((b for b in place.branches if b.subject is not None and tests_rank(b.subject)), None)
            if block is None or any("__call__" in b.methods for b in _others(place, block)):
                continue
            records = place.event.grad is not False
            if records or model.short.startswith("Fully") or _has_buffers(model):
                seen.add(id(place.event.node))
                yield _finding(place, block, records)


def _others(place: Place, block: Block) -> list[Block]:
    """The other arm of the same condition."""
    at = place.path.index(block)
    scope = place.path[at - 1] if at else block
    return [b for b in scope.body if isinstance(b, Block) and b is not block and b.node is block.node]


def _has_buffers(model: Thing) -> bool:
    return any(isinstance(m, Thing) and "BatchNorm" in m.short for m in submodules(unwrap(model)))


def _finding(place: Place, block: Block, records: bool) -> Finding:
    event = place.event
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} runs the wrapped model only where the "
        f"condition at line {block.line} on the rank holds: its forward pass is a collective and the others never join",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.HIGH if records else Severity.MEDIUM,
        measured={"kind": "rank", "condition_line": block.line, "training": records},
    )
