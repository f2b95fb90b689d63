"""The device is waited for in every step.

`loss.item()`, `.cpu()`, `float(loss)` and printing a tensor wait until the device has computed it. In every step of a
fast loop the host then never runs ahead, and the device idles between kernels. Read it every 50 steps, or add up
detached tensors and read the sum. A remark: on a CPU, or with steps of a second, it costs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.trace import Place
from traindx_tools.on_code.training import innermost
from traindx_tools.on_code.values import Tensor
from traindx_tools.rules import Rule

RULE = Rule(
    id="C208",
    name="device-read-each-step",
    title="The device is waited for in every step",
    severity=Severity.INFO,
    sees="item(), cpu(), numpy() or print of tensors with a graph in the innermost training loop, several in a step.",
    matters="The host cannot run ahead: small kernels are no longer hidden behind each other.",
    alike=("a loop on the CPU", "steps that take a second"),
    confirm=("a profiler trace shows cudaStreamSynchronize in every step",),
)
_READS = frozenset({"item", "cpu", "numpy", "tolist"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every training loop of a project that uses an accelerator."""
    if not any("cuda" in f.text or "accelerat" in f.text for f in project.files):
        return
    for loop in project.training_loops:
        reads = [p for p in loop.places if _reads(p, loop)]
        if len({id(p.event.node) for p in reads}) >= 2:
            yield _finding(reads)


def _reads(place: Place, loop: TrainingLoop) -> bool:
    event = place.event
    if event.kind != "call" or event.method not in _READS | {"print"}:
        return False
    values = event.args if event.method == "print" else (event.receiver,)
    if not any(isinstance(v, Tensor) and v.models for v in values):
        return False
    inner = innermost(place, loop)
    own = any(p.loops and p.loops[-1] is inner for p in loop.backwards)
    return own and not any(b.kind in ("branch", "loop") for b in place.path[place.path.index(inner) + 1 :])


def _finding(reads: list[Place]) -> Finding:
    event = reads[0].event
    texts = sorted({ast.unparse(p.event.node)[:40] for p in reads})
    return RULE.finding(
        f"{', '.join(texts[:4])} at {event.file.path}:{event.line} and after it wait for the device in every step",
        location(event),
        event.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "reads", "count": len(texts)},
    )
