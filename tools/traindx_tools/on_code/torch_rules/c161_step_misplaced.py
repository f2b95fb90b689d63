"""The optimizer steps where its gradients are not.

Three ways. The step stands between `zero_grad` and `backward`: it always sees cleared gradients, and what backward then
computes is cleared by the next iteration. Or it stands after the loop over batches, while every batch clears what the
batches before it computed: one update an epoch, with the last batch alone. Or its condition never holds:
`step % accumulate == accumulate`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.repairs import order
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Block, Place
from traindx_tools.on_code.training import clearing, innermost, stepped
from traindx_tools.on_code.values import Value
from traindx_tools.rules import Rule

RULE = Rule(
    id="C161",
    name="step-misplaced",
    title="The optimizer steps where its gradients are not",
    severity=Severity.CRITICAL,
    sees="The order of zero_grad, backward and step in an iteration, and the loops that each stands in.",
    matters="The weights do not move, or once an epoch with one batch.",
    alike=("a learning rate of 0", "frozen parameters", "gradient accumulation, which clears once a window"),
    confirm=("print the gradient norm just before optimizer.step(): it is 0 or None",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every step of a known optimizer."""
    for loop in project.training_loops:
        known: dict[tuple[int, int], Order] = {}
        for place in loop.of("step"):
            optimizer = stepped(place.event)
            if optimizer is None:
                continue
            inner = innermost(place, loop)
            if (test := _never(place, inner)) is not None:
                yield _finding(place, f"is never reached: {test} cannot hold", "never", loop.backwards[0])
            elif not _conditional(place, inner):
                key = id(inner), id(optimizer)
                if key not in known:
                    known[key] = Order.of(loop, inner, optimizer)
                yield from _judged(known[key], place, inner)


@dataclass(frozen=True)
class Order:
    """The calls of backward in a loop and what clears an optimizer's gradients in it, as they follow one another."""

    optimizer: Value
    backwards: list[Place]
    clearing: list[Place]

    @classmethod
    def of(cls, loop: TrainingLoop, inner: Block, optimizer: Value) -> Order:
        """What this loop does to the gradients of this optimizer."""
        cleared = [p for p in clearing(loop, optimizer) if inner in p.path]
        return cls(optimizer, loop.inside(inner, "backward", "manual_backward"), cleared)


def _never(place: Place, inner: Block) -> str | None:
    """A condition around the step, inside the loop, that asks a remainder for a value that it never has."""
    for block in place.path[place.path.index(inner) + 1 :]:
        test = block.node.test if block.kind == "branch" and isinstance(block.node, ast.If) else None
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
            continue
        code, left = syntax(block.file), test.left
        right = code.number(test.comparators[0])
        by = code.number(left.right) if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) else None
        if by is not None and right is not None and by > 0 and not 0 <= right < by:
            return block.file.segment(test)
    return None


def _conditional(place: Place, inner: Block) -> bool:
    return any(b.kind == "branch" for b in place.path[place.path.index(inner) + 1 :])


def _judged(order: Order, step: Place, inner: Block) -> Iterator[Finding]:
    backwards, cleared = order.backwards, order.clearing
    if not backwards or not cleared:
        return
    before = [p for p in cleared if p.order < step.order] if backwards[0].order > step.order else []
    if (
        before
        and all(b.order > step.order for b in backwards)
        and not any(_conditional(p, inner) or p.order > step.order for p in cleared)
    ):
        yield _finding(
            step,
            f"stands between the clearing of the gradients at line {before[-1].event.line} and backward() at line "
            f"{backwards[0].event.line}: it never sees a gradient",
            "before backward",
            backwards[0],
        )
        return
    nested = _own_loop(backwards, inner)
    if nested is not None and all(b.order < step.order and nested in b.path for b in reversed(backwards)):
        inside = [p for p in cleared if nested in p.path and not _conditional(p, nested)]
        if inside and not any(p.order > step.order for p in cleared):
            yield _finding(
                step,
                f"stands outside the loop at line {nested.line}, in which every iteration clears the gradients (line "
                f"{inside[0].event.line}): only the last batch's gradient is ever applied",
                "outside the loop",
                backwards[0],
            )


def _own_loop(backwards: list[Place], inner: Block) -> Block | None:
    """The loop inside `inner` in which backward runs."""
    loops = [b for b in backwards[0].path[backwards[0].path.index(inner) + 1 :] if b.kind == "loop"]
    return loops[-1] if loops else None


def _finding(step: Place, why: str, kind: str, backward: Place) -> Finding:
    event = step.event
    return RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} {why}",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind, "backward_line": backward.event.line},
        patch=() if kind == "never" else order.behind_backward(
            event, backward.event, "step behind backward", kind != "before backward"
        ),
    )
