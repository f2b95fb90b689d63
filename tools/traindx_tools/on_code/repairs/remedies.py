"""The remedies of invariants as edits of the text: which statement goes where."""

from __future__ import annotations

import ast
from collections.abc import Callable

from traindx_tools.finding import Patch
from traindx_tools.invariants.breach import Remedy
from traindx_tools.on_code import patching
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.filling.unused_results import Lost
from traindx_tools.on_code.repairs import (
    attention_masks,
    axes,
    divisors,
    epsilon,
    forms,
    graph,
    jax_values,
    keys,
    losses,
    order,
    ownership,
    scores,
)
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor
from traindx_tools.program.moments import Act


def patches(remedy: Remedy) -> tuple[Patch, ...]:
    """The edits, or none where they are not certain."""
    return _MADE[remedy.kind](remedy)


def _event(act: Act | None) -> Event | None:
    return act.origin if act is not None and isinstance(act.origin, Event) else None


def _name(step: Event) -> str:
    """The optimizer that a step moves, as it is written: the receiver, or what a scaler is given."""
    node = step.node
    if not isinstance(node, ast.Call):
        return ""
    given = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
    return source_of(step.file, given) if isinstance(given, (ast.Name, ast.Attribute)) else ""


def _clear(remedy: Remedy) -> tuple[Patch, ...]:
    """zero_grad() before backward, or behind the step that closes a window."""
    step, backward = _event(remedy.act), _event(remedy.target)
    statement = patching.statement_of(step.file, step.node) if step is not None else None
    if step is None or statement is None or not (name := _name(step)):
        return ()
    windowed = remedy.text == "window"
    summary = f"clear the gradients of {name} {'after every step' if windowed else 'in every iteration'}"
    other = patching.statement_of(step.file, backward.node) if backward is not None and (
        backward.file is step.file) else None  # fmt: skip
    if other is not None and not windowed and other in patching.siblings(step.file, statement):
        made = patching.insert_before(step.file, other, f"{name}.zero_grad()", summary)
    else:
        made = patching.insert_after(step.file, statement, f"{name}.zero_grad()", summary)
    return (made,) if made is not None else ()


def _clear_behind_step(remedy: Remedy) -> tuple[Patch, ...]:
    clear, step = _event(remedy.act), _event(remedy.target)
    if clear is None or step is None or clear.file is not step.file:
        return ()
    old, new = patching.statement_of(clear.file, clear.node), patching.statement_of(step.file, step.node)
    if not isinstance(old, ast.Expr) or new is None or old.lineno != old.end_lineno or not (name := _name(step)):
        return ()
    added = patching.insert_after(clear.file, new, f"{name}.zero_grad()",
                                  "clear the gradients after the step that used them")
    gone = Patch(clear.file.path, old.lineno, old.lineno, clear.file.line(old.lineno), "",
                 "do not clear them in every micro-batch")
    return (gone, added) if added is not None else ()


def _behind_backward(remedy: Remedy) -> tuple[Patch, ...]:
    moved, backward = _event(remedy.act), _event(remedy.target)
    if moved is None or backward is None:
        return ()
    what = "step behind backward" if moved.method == "step" else "clip what backward has computed"
    return order.behind_backward(moved, backward, what, remedy.text == "nested")


def _before(remedy: Remedy) -> tuple[Patch, ...]:
    moved, target = _event(remedy.act), _event(remedy.target)
    return order.before_statement(moved, target, "clip before the step") if moved and target else ()


def _unscale(remedy: Remedy) -> tuple[Patch, ...]:
    clip, step = _event(remedy.act), _event(remedy.target)
    if clip is None or step is None or step.file is not clip.file or step.function is not clip.function:
        return ()
    statement, node = patching.statement_of(clip.file, clip.node), step.node
    if statement is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return ()
    code = f"{ast.unparse(node.func.value)}.unscale_({ast.unparse(node.args[0])})"
    made = patching.insert_before(clip.file, statement, code, "unscale the gradients before they are clipped")
    return (made,) if made is not None else ()


def _step(remedy: Remedy) -> tuple[Patch, ...]:
    backward = _event(remedy.act)
    return order.step_after(backward, remedy.text) if backward is not None else ()


def _step_by_the_scaler(remedy: Remedy) -> tuple[Patch, ...]:
    step, backward = _event(remedy.act), _event(remedy.target)
    return order.stepped_by_scaler(step, backward, remedy.text == "updated") if step and backward else ()


def _update(remedy: Remedy) -> tuple[Patch, ...]:
    step = _event(remedy.act)
    return order.updated(step) if step is not None else ()


def _out_of_the_loop(remedy: Remedy) -> tuple[Patch, ...]:
    made = _event(remedy.act)
    loops = syntax(made.file).loops(made.node) if made is not None else []
    inner = next((x for x in loops if str(getattr(x, "lineno", 0)) == remedy.text), None)
    return order.out_of_loop(made.file, made.node, inner) if made is not None and inner is not None else ()


def _scale(remedy: Remedy) -> tuple[Patch, ...]:
    plain, node = _event(remedy.act), getattr(remedy.act.origin, "node", None)
    if plain is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or (
            remedy.target is None):
        return ()
    change = Change(plain.file, "scale this loss as well")
    return change.wrap(node.func.value, f"{remedy.target.owner}.scale(", ")").patches()


def _before_the_guard(remedy: Remedy) -> tuple[Patch, ...]:
    """Step and update go in front of the guard, where they follow it at once: the scaler leaves the step out."""
    step, update = _event(remedy.act), _event(remedy.target)
    if step is None or update is None or step.file is not update.file:
        return ()
    code = syntax(step.file)
    moved = [code.statement(step.node), code.statement(update.node)]
    block = code.block(moved[0]) if moved[0] is not None else []
    at = block.index(moved[0]) if moved[0] in block else 0
    guard = block[at - 1] if at > 0 else None
    if not isinstance(guard, ast.If) or block[at: at + 2] != moved or not all(isinstance(m, ast.Expr) for m in moved):
        return ()
    change = Change(step.file, "let the scaler skip the step and lower its scale")
    for statement in moved:
        if statement is not None:
            change = change.move_before(statement, guard)
    return change.patches()


def _train_again(remedy: Remedy) -> tuple[Patch, ...]:
    """train() in each turn of a loop, or before it, by the name that the loop calls the module by."""
    forward = _event(remedy.target)
    node = forward.node if forward is not None else None
    if forward is None or not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
        return ()
    name = ast.unparse(node.func)
    loop = next((x for x in syntax(forward.file).loops(node) if str(getattr(x, "lineno", 0)) == remedy.text), None)
    if not isinstance(loop, (ast.For, ast.While)) or not loop.body:
        return ()
    if remedy.kind == "train before the loop":
        return order.training_again(forward.file, loop, name)
    made = patching.insert_before(forward.file, loop.body[0], f"{name}.train()",
                                  f"put {name} back into training mode in every iteration")
    return (made,) if made is not None else ()


def _evaluate(remedy: Remedy) -> tuple[Patch, ...]:
    called = _event(remedy.act)
    return order.in_eval_mode(called.file, called.node) if called is not None else ()


def _ask_the_mode(remedy: Remedy) -> tuple[Patch, ...]:
    called = _event(remedy.act)
    if called is None:
        return ()
    return forms.keyword_given(called.file, called.node, "training", "self.training", "drop units in training only")


def _cut(remedy: Remedy) -> tuple[Patch, ...]:
    """`.detach()` behind what is kept: the value, or those of a tuple that carry a graph."""
    kept = _event(remedy.act)
    expression = graph.kept_expression(kept) if kept is not None else None
    if kept is None or expression is None:
        return ()
    values = [expression]
    if isinstance(expression, ast.Tuple):
        values = [expression.elts[int(i)] for i in remedy.text.split() if int(i) < len(expression.elts)]
    if not values or not all(isinstance(v, (ast.Name, ast.Attribute, ast.Subscript)) for v in values):
        return ()
    change = Change(kept.file, "keep the value, not its graph")
    for value in values:
        change = change.insert(value.end_lineno or 0, value.end_col_offset or 0, ".detach()")
    return change.patches()


def _without_gradients(remedy: Remedy) -> tuple[Patch, ...]:
    called = _event(remedy.act)
    function = called.function if called is not None else None
    return losses.without_gradients(function.file, function.node) if function is not None else ()


def _kept(remedy: Remedy) -> tuple[Patch, ...]:
    """The new value bound to the name of the old one; the state to the name that went in."""
    lost = remedy.act.origin
    if remedy.text == "state":
        both = isinstance(lost.target, ast.Name) and isinstance(lost.state, ast.Name)
        change = Change(lost.code.file, "keep the optimizer's state")
        return change.replace(lost.target, lost.state.id).patches() if both else ()
    if remedy.text == "array":
        return _bound(lost, lost.call.func.value.value.value)
    return forms.kept_result(lost.code.file, lost.call) if remedy.text == "parameters" else ()


def _bound(lost: Lost, name: ast.expr) -> tuple[Patch, ...]:
    text = f"{ast.unparse(name)} = {ast.unparse(lost.call)}"
    made = patching.replace_text(lost.code.file, lost.call, text, "bind the new array")
    return (made,) if isinstance(name, ast.Name) and made is not None else ()


def _guarded_log(remedy: Remedy) -> tuple[Patch, ...]:
    return losses.guarded_logs(remedy.act.origin)


def _larger_epsilon(remedy: Remedy) -> tuple[Patch, ...]:
    """The epsilon of a clamp raised to what the dtype resolves; numpy's dtype must be known for that."""
    event, value, clamp = remedy.act.origin
    sure = value.dtype is not None or not event.name.startswith("numpy.")
    return epsilon.raised(clamp.file, clamp.node, value.dtype or "float32") if sure else ()


def _epsilon_under_root(remedy: Remedy) -> tuple[Patch, ...]:
    event, written = remedy.act.origin
    node, own = event.node, isinstance(event.receiver, Tensor)
    inner = node.left if isinstance(node, ast.BinOp) else node.func.value if own or not node.args else node.args[0]
    inner = written if isinstance(written, ast.expr) else inner
    bare = isinstance(node, ast.Call) and bool(node.args) and not own
    text = f"{ast.unparse(inner)} + 1e-12"
    made = patching.replace_text(event.file, inner, text if bare else f"({text})", "put an epsilon under the root")
    return (made,) if made is not None else ()


def _usual_number(remedy: Remedy) -> tuple[Patch, ...]:
    """The usual number in place of the one that is written in the call."""
    event = _event(remedy.act)
    call = event.node if event is not None else None
    given = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []
    code = syntax(event.file) if event is not None else None
    named = [k.value for k in getattr(call, "keywords", ()) if k.arg == remedy.act.name]
    numbers = named or [a for a in given if not isinstance(a, ast.Starred) and code and code.number(a) is not None]
    if event is None or len(numbers) != 1 or not isinstance(numbers[0], (ast.Constant, ast.UnaryOp)):
        return ()
    return Change(event.file, "the usual number").replace(numbers[0], remedy.text).patches()


def _another_axis(remedy: Remedy) -> tuple[Patch, ...]:
    event, at = _event(remedy.act), remedy.act.at
    if event is None or at is None:
        return ()
    return axes.over_classes(event.file, event.node) if remedy.kind == "classes" else (
        axes.pooled_over_time(event.file, at.line) if at.file == event.file.path else ())


def _mask(remedy: Remedy) -> tuple[Patch, ...]:
    event = _event(remedy.act)
    if event is None:
        return ()
    if remedy.kind == "turn the mask":
        return attention_masks.turned(event.file, event.node, remedy.text)
    return attention_masks.smallest(event.file, event.node) if remedy.text.startswith("-") else ()


_KEYS: dict[str, Callable[..., tuple[Patch, ...]]] = {"distinct": keys.distinct, "in loop": keys.anew_in_loop}
_MADE: dict[str, Callable[[Remedy], tuple[Patch, ...]]] = {
    "clear": _clear, "clear behind step": _clear_behind_step, "behind backward": _behind_backward, "before": _before,
    "unscale": _unscale, "step": _step, "step by the scaler": _step_by_the_scaler, "update": _update,
    "out of the loop": _out_of_the_loop, "scale": _scale, "before the guard": _before_the_guard,
    "train in the loop": _train_again, "train before the loop": _train_again, "evaluate in eval mode": _evaluate,
    "ask the mode": _ask_the_mode, "built later": ownership.later, "over the new": ownership.over_the_new,
    "over all": ownership.over_all, "wrapped again": ownership.wrapped_again, "copy": ownership.copied,
    "loaded trainable": ownership.trainable, "register": ownership.registered, "thaw": ownership.thawed,
    "hold too": ownership.held_too,
    "same shape": lambda r: losses.without_last_axis(*r.act.origin),
    "raw scores": scores.raw_scores, "log target": scores.log_target, "exchange": scores.exchanged,
    "cut what is kept": _cut, "without gradients": _without_gradients,
    "keep the result": _kept,
    "another key": lambda r: _KEYS[r.act.origin[0]](*r.act.origin[1]),
    "usual number": _usual_number, "guard the logarithm": _guarded_log,
    "raise the epsilon": _larger_epsilon, "epsilon under the root": _epsilon_under_root,
    "epsilon in the divisor": lambda r: divisors.with_epsilon(r.act.origin[0]),
    "at least one": lambda r: divisors.at_least_one(r.act.origin[0]),
    "safe inside": lambda r: jax_values.safe_inside(r.act.origin[0].file, *r.act.origin[1:]),
    "classes": _another_axis, "pool over time": _another_axis, "turn the mask": _mask,
    "fits every type": _mask,
}
