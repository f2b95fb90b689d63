"""A learning rate that is multiplied into itself in every training step: where the traced loop passes it each time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.project import TrainingLoop
from traindx_tools.on_code.source import below
from traindx_tools.on_code.trace import Block, Place
from traindx_tools.on_code.values import Symbol


def multiplied(loop: TrainingLoop) -> Iterator[Place]:
    """Where `group["lr"] *= x` runs in every training step."""
    for place in loop.places:
        event = place.event
        if event.kind not in ("augmented", "store"):
            continue
        if not _own_rate(place):
            continue
        stepping = next(
            (b for b in reversed(place.path) if b.kind == "loop" and {"backward", "manual_backward"} & b.methods), None
        )
        if stepping is None or not _batch_loop(loop, stepping) or not _every_time(place, stepping):
            continue
        yield place


def _own_rate(place: Place) -> bool:
    """Whether an event sets a group's "lr" to a product of itself."""
    node = place.event.node
    target: ast.expr | None = None
    value: ast.expr | None = None
    if place.event.kind == "augmented":
        if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Mult, ast.Div)):
            target = node.target
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Mult):
            target = node.targets[0]
        return (
            isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value == "lr"
        )
    if place.event.name != "item.lr" or not isinstance(node, ast.Subscript):
        return False
    value = _assigned(place, node)
    text = ast.unparse(node)
    return value is not None and any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult) and text in (ast.unparse(n.left), ast.unparse(n.right))
        for n in below(value)
    )


def _assigned(place: Place, target: ast.Subscript) -> ast.expr | None:
    function = place.event.function
    tree: ast.AST = function.node if function else place.event.file.tree
    for node in below(tree):
        if isinstance(node, ast.Assign) and any(t is target for t in node.targets):
            return node.value
    return None


def _batch_loop(loop: TrainingLoop, stepping: Block) -> bool:
    """Whether the loop is the innermost one with backward: no further training loop inside it."""
    return not any(
        b is not stepping and b.kind == "loop" and {"backward", "manual_backward"} & b.methods
        for p in loop.backwards
        for b in p.path[p.path.index(stepping) :]
        if stepping in p.path
    )


def _every_time(place: Place, stepping: Block) -> bool:
    """Not under a condition that picks single moments; an inequality over a counter leaves it running from then on."""
    for block in place.path[place.path.index(stepping) :]:
        if block.kind != "branch" or not isinstance(block.node, ast.If):
            continue
        test = block.node.test
        if not (
            isinstance(test, ast.Compare)
            and len(test.ops) == 1
            and isinstance(test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
        ):
            return False
        if not _counter(test.left, place) and not _counter(test.comparators[0], place):
            return False
    return True


def _counter(node: ast.expr, place: Place) -> bool:
    """Whether an expression is a step counter: the function, or a loop, moves it by a constant."""
    text = ast.unparse(node)
    function = place.event.function
    if isinstance(node, (ast.Name, ast.Attribute)):
        for tree in ([function.node] if function else []) + [b.node for b in place.path if b.kind == "loop"]:
            for inner in below(tree):
                if (
                    isinstance(inner, ast.AugAssign)
                    and isinstance(inner.op, ast.Add)
                    and ast.unparse(inner.target) == text
                    and (isinstance(inner.value, ast.Constant))
                ):
                    return True
        if any(isinstance(a, Symbol) and a.role == "index" for a in place.event.args):
            return True
        targets = [b.node.target for b in place.path if b.kind == "loop" and isinstance(b.node, ast.For)]
        if any(isinstance(n, ast.Name) and n.id == text for t in targets for n in below(t)):
            return True
    return False
