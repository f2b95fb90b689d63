"""The allocator's cache is emptied in every step.

`torch.cuda.empty_cache()` hands cached blocks back to the driver, and the next step asks for them again: cudaMalloc and
a synchronisation each time. It frees nothing that tensors hold and helps against no leak. `gc.collect()` in every step
stalls the loop likewise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import innermost
from traindx_tools.rules import Rule

RULE = Rule(
    id="C207",
    name="cache-emptied-each-step",
    title="The allocator's cache is emptied in every step",
    severity=Severity.INFO,
    sees="empty_cache() or gc.collect() in the innermost training loop, under no condition.",
    matters="Every step waits for the driver: often a tenth to a half of the throughput.",
    alike=("a call between phases, once", "a call every thousand steps"),
    confirm=("time a step without the call",),
)
_CALLS = ("torch.cuda.empty_cache", "gc.collect", "torch.mps.empty_cache", "torch.xpu.empty_cache")


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop."""
    for loop in project.training_loops:
        for place in loop.of("empty_cache", "collect"):
            inner = innermost(place, loop)
            conditional = any(b.kind == "branch" for b in place.path[place.path.index(inner) + 1 :])
            batches = inner.kind == "loop" and any(p.loops and p.loops[-1] is inner for p in loop.backwards)
            if place.event.name in _CALLS and not conditional and batches:
                yield _finding(place.event)


def _finding(event: Event) -> Finding:
    node = event.node
    statement = patching.statement_of(event.file, node)
    made: Patch | None = None
    alone = isinstance(statement, ast.Expr) and event.file.line(event.line).strip() == ast.unparse(node)
    if alone and statement is not None and len(patching.siblings(event.file, statement)) > 1:
        made = Patch(event.file.path, event.line, event.line, event.file.line(event.line), "", "not in every step")
    return RULE.finding(
        f"{event.file.segment(node)} at {event.file.path}:{event.line} runs in every training step: each step asks the "
        "driver for its memory again",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": event.method},
        patch=() if made is None else (made,),
    )
