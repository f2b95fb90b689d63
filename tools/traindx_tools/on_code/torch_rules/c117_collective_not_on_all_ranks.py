"""A collective that not every process calls, or not equally often.

`all_reduce`, `all_gather`, `broadcast` and `barrier` return only when every process of the group has called them. One
under `if rank == 0`, or one in a loop that runs over a rank's own share of the data (`x[rank::world_size]`, which
differs by one where the length is not divisible), leaves the others waiting until the watchdog kills the job.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.ranks import tests_rank
from traindx_tools.on_code.repairs import ranks
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import syntax, written
from traindx_tools.on_code.trace import Block, Event, Place, walk
from traindx_tools.on_code.values import Bag, Tensor, Thing, Value

(RULE,) = pages("ranks", ("C117",))
_COLLECTIVES = frozenset({"all_reduce", "all_gather", "broadcast", "barrier", "reduce_scatter",
                          "all_gather_into_tensor", "all_gather_object", "reduce", "gather", "scatter",
                          "broadcast_object_list", "all_to_all", "monitored_barrier",
                          "reduce_scatter_tensor"})  # fmt: skip
_LISTS = ("gather", "scatter", "broadcast_object_list")
"""Collectives for which one rank hands over a list that the others do not have."""
_WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel")
"""Their forward pass is a collective: it prepares the reduction of gradients and broadcasts buffers."""
_ACCELERATE = frozenset({"wait_for_everyone", "gather", "gather_for_metrics", "reduce"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every collective."""
    for root in project.roots:
        for place in walk(root, _COLLECTIVES | _ACCELERATE | {"__call__"}):
            if _is_collective(place):
                yield from _under_rank(root, place)
                yield from _uneven(project, place)


def _is_collective(place: Place) -> bool:
    event = place.event
    model = event.receiver
    if isinstance(model, Thing) and event.method == "__call__" and model.short in _WRAPPERS:
        return event.grad is not False or model.short.startswith("Fully")
    if event.kind != "call" or "group" in event.kwargs or "process_group" in event.kwargs:
        return False
    if event.name.startswith("torch.distributed.") and event.name.count(".") == 2:
        return event.method in _COLLECTIVES
    return event.name.startswith("accelerate.Accelerator.") and event.method in _ACCELERATE


def _under_rank(root: Block, place: Place) -> Iterator[Finding]:
    event = place.event
    asking = [b for b in place.branches if b.subject is not None and tests_rank(b.subject)]
    for block in asking:
        others = [b for b in _siblings(place, block) if event.method in b.methods]
        if others or _in_both_arms(block, event.method):
            return  # the others call it where this one does not
    if asking and _answered(event, asking[-1]):
        return
    for block in asking:
        yield RULE.finding(
            f"{event.method} at {event.file.path}:{event.line} runs only where the condition at line "
            f"{block.line} on the rank "
            "holds: the other processes never call it, and this one waits for them",
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "rank", "condition_line": block.line},
            patch=_taken_out(place, block),
        )
        return


def _answered(event: Event, block: Block) -> bool:
    """Whether the same tensor goes through the same collective under another condition of the file: a signal."""
    node = event.node
    if not isinstance(node, ast.Call) or not node.args:
        return False
    code, text = syntax(event.file), written(node.args[0])
    return any(c is not node and c.args and written(c.args[0]) == text
               and any(isinstance(up, (ast.If, ast.While)) for up in code.above(c))
               and not any(up is block.node for up in code.above(c)) for c in code.calls(event.method))  # fmt: skip


def _taken_out(place: Place, block: Block) -> tuple[Patch, ...]:
    """The call in the condition's own function by which the collective is reached, for all ranks."""
    inside = place.path[place.path.index(block) + 1 :]
    event = place.event
    one_sided = event.method in _LISTS and "Accelerator" not in event.name
    if one_sided or any(b.kind == "branch" for b in inside):
        return ()
    called = next((b.node for b in inside if b.kind == "call"), event.node)
    return ranks.reached_by_all(block.file, block.node, called)


def _in_both_arms(block: Block, method: str) -> bool:
    """Whether both arms of the condition are written with the call, be it inside a function defined there."""
    if not isinstance(block.node, ast.If):
        return False
    return all(
        any(isinstance(n, ast.Attribute) and n.attr == method for statement in arm for n in below(statement))
        for arm in (block.node.body, block.node.orelse)
    )


def _siblings(place: Place, block: Block) -> list[Block]:
    """Other branches in the same function: the `else`, or a second condition (first the others wait, then this one)."""
    at = place.path.index(block)
    scope = next((b for b in reversed(place.path[:at]) if b.kind in ("call", "root")), place.path[0])
    found: list[Block] = []
    stack = [b for b in scope.body if isinstance(b, Block)]
    while stack:
        one = stack.pop()
        if one.kind == "branch" and one is not block and one not in place.path:
            found.append(one)
        elif one.kind != "call":
            stack.extend(b for b in one.body if isinstance(b, Block))
    return found


def _uneven(project: Project, place: Place) -> Iterator[Finding]:
    event = place.event
    for block in place.loops:
        share = _share(block.subject)
        if share is None:
            continue
        uneven = share == "uneven share"
        yield RULE.finding(
            f"{event.method} at {event.file.path}:{event.line} is called once for each item of the loop at "
            f"{block.file.path}:{block.line}, which runs over a rank's own share of the data: "
            + (
                "the shares differ in size, so one rank makes a call that the others never join"
                if uneven
                else "if the length is not divisible by the number of processes, one rank makes one call more"
            ),
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE if uneven else Bearing.SIGN,
            severity=None if uneven else Severity.MEDIUM,
            measured={"kind": "uneven", "loop_line": block.line},
        )
        return


def _share(value: Value | None) -> str | None:
    if isinstance(value, Tensor):
        return next((t for t in ("uneven share", "share") if t in value.tags), None)
    if isinstance(value, Bag):
        return next((s for s in (_share(v) for v in value.items[:3]) if s), None)
    return None
