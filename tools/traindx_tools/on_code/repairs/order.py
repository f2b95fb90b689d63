"""What is called in a training loop, and in which order (C133 to C166)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.repairs.names import bound_between, reads
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import last_name, syntax, written
from traindx_tools.on_code.trace import Event

_BETWEEN = frozenset({"clip_grad_norm_", "clip_grad_value_", "unscale_"})
"""What belongs between backward and step."""


def step_after(backward: Event, optimizer: str) -> tuple[Patch, ...]:
    """optimizer.step() behind backward, and behind what clips after it."""
    code = syntax(backward.file)
    statement = code.statement(backward.node)
    plain = isinstance(statement, ast.Expr) and "scale(" not in written(statement)
    if statement is None or not plain or not optimizer.replace(".", "").replace("_", "").isalnum():
        return ()
    change = Change(backward.file, f"step {optimizer}")
    return change.after(_last_before_step(change, statement), f"{optimizer}.step()").patches()


def _last_before_step(change: Change, backward: ast.stmt) -> ast.stmt:
    """The last of the statements right behind backward that prepare the gradients."""
    block = change.block(backward)
    last = backward
    for statement in block[block.index(backward) + 1 :]:
        calls = {last_name(n.func) for n in below(statement) if isinstance(n, ast.Call)}
        if not calls & _BETWEEN or not isinstance(statement, (ast.Expr, ast.Assign)):
            break
        last = statement
    return last


def before_statement(moved: Event, target: Event, summary: str) -> tuple[Patch, ...]:
    """A statement in front of an earlier one of its block."""
    one, other = _in_one_block(moved, target)
    if one is None or other is None or bound_between(syntax(moved.file), other, one, reads(one)):
        return ()
    return Change(moved.file, summary).move_before(one, other).patches()


def behind_backward(moved: Event, backward: Event, summary: str, nested: bool = False) -> tuple[Patch, ...]:
    """A statement behind backward and what prepares the gradients there; with `nested`, out of another block."""
    if moved.file is not backward.file:
        return ()
    code = syntax(moved.file)
    one, other = code.statement(moved.node), code.statement(backward.node)
    if one is None or other is None or code.scope(moved.node) is not code.scope(backward.node):
        return ()
    if (code.parent(one) is not code.parent(other)) != nested or (nested and not isinstance(one, ast.Expr)):
        return ()
    change = Change(moved.file, summary)
    target = _last_before_step(change, other)
    made = {n.id for n in below(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    block = change.block(other)
    passed = [s for s in block if one.lineno < s.lineno <= target.lineno]
    if any(made & reads(s) for s in passed):
        return ()
    return change.move_after(one, target).patches()


def _in_one_block(one: Event, other: Event) -> tuple[ast.stmt | None, ast.stmt | None]:
    code = syntax(one.file)
    first, second = code.statement(one.node), code.statement(other.node)
    together = one.file is other.file and first is not None and second is not None and (
        code.parent(first) is code.parent(second))  # fmt: skip
    return (first, second) if together else (None, None)


def stepped_by_scaler(step: Event, backward: Event, updates: bool) -> tuple[Patch, ...]:
    """scaler.step(optimizer) in place of optimizer.step(), with update() where it is missing."""
    scale = backward.node.func.value if isinstance(backward.node, ast.Call) and isinstance(
        backward.node.func, ast.Attribute) else None  # fmt: skip
    owner = scale.func.value if isinstance(scale, ast.Call) and isinstance(scale.func, ast.Attribute) else None
    node = step.node
    if owner is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ()
    if step.file is not backward.file or syntax(step.file).scope(node) is not syntax(step.file).scope(backward.node):
        return ()
    scaler = source_of(step.file, owner)
    change = Change(step.file, "step through the scaler, which divides the gradients first")
    change.replace(node, f"{scaler}.step({source_of(step.file, node.func.value)})")
    if not updates:
        change.after(change.code.statement(node), f"{scaler}.update()")
    return change.patches()


def updated(step: Event) -> tuple[Patch, ...]:
    """scaler.update() behind the last scaler.step() of a block."""
    node, code = step.node, syntax(step.file)
    statement = code.statement(node)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or statement is None:
        return ()
    scaler = source_of(step.file, node.func.value)
    change = Change(step.file, "update the loss scale")
    others = [s for s in change.block(statement) if f"{scaler}.step(" in written(s)]
    return change.after(others[-1] if others else statement, f"{scaler}.update()").patches()


def out_of_loop(file: SourceFile, node: ast.AST, loop: ast.AST) -> tuple[Patch, ...]:
    """An object that is made anew in every iteration made once, in front of the loop."""
    code = syntax(file)
    statement = code.statement(node)
    if not isinstance(statement, ast.Assign) or not isinstance(loop, ast.stmt) or code.parent(statement) is not loop:
        return ()
    bound = {n.id for n in below(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if reads(statement) & bound:
        return ()
    return Change(file, "make it once, before the loop").move_before(statement, loop).patches()


def training_again(file: SourceFile, loop: ast.AST, model: str) -> tuple[Patch, ...]:
    """model.train() in front of a training loop."""
    if not isinstance(loop, ast.stmt) or not model.replace(".", "").replace("_", "").isalnum():
        return ()
    return Change(file, "switch back to training").before(loop, f"{model}.train()").patches()


def in_eval_mode(file: SourceFile, call: ast.AST) -> tuple[Patch, ...]:
    """eval() before a block without gradients, train() behind it where it does not stand there already."""
    code = syntax(file)
    regions = [a for a in code.above(call) if isinstance(a, ast.With)]
    suspends = ("no_grad", "inference_mode", "set_grad_enabled(False)")
    region = next((a for a in regions if any(s in written(a.items[0].context_expr) for s in suspends)), None)
    model = written(call.func) if isinstance(call, ast.Call) else ""
    if (
        region is None
        or not model.replace(".", "").replace("_", "").isalnum()
        or code.scope(region) is not code.scope(call)
    ):
        return ()
    if any(isinstance(n, (ast.Return, ast.Break, ast.Continue, ast.Yield)) for n in below(region)):
        return ()
    change = Change(file, "evaluate in eval mode").before(region, f"{model}.eval()")
    block = change.block(region)
    behind = block[block.index(region) + 1:][:1]
    if any(written(s) == f"{model}.train()" for s in behind):
        return change.patches()
    return change.after(region, f"{model}.train()").patches()
