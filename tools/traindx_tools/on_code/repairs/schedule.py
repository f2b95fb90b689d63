"""Learning-rate schedules (C110): stepped elsewhere, built for all processes, built from where the run goes on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import Thing

_BASE = re.compile(r"(^|_)(lr|rate|eta)\d*$", re.IGNORECASE)
_COUNTS = {
    "get_linear_schedule_with_warmup": ((1, "num_warmup_steps"), (2, "num_training_steps")),
    "get_cosine_schedule_with_warmup": ((1, "num_warmup_steps"), (2, "num_training_steps")),
    "get_polynomial_decay_schedule_with_warmup": ((1, "num_warmup_steps"), (2, "num_training_steps")),
    "get_cosine_with_hard_restarts_schedule_with_warmup": ((1, "num_warmup_steps"), (2, "num_training_steps")),
    "get_scheduler": ((2, "num_warmup_steps"), (3, "num_training_steps")),
    "CosineAnnealingLR": ((1, "T_max"),),
    "LinearLR": ((3, "total_iters"),),
    "PolynomialLR": ((1, "total_iters"),),
    "OneCycleLR": ((2, "total_steps"),),
}
"""The arguments of each scheduler that count steps."""


def for_all_processes(file: SourceFile, scheduler: Thing) -> tuple[Patch, ...]:
    """Every count of steps multiplied by the number of processes that the prepared scheduler is stepped by."""
    node, code = scheduler.node, syntax(file)
    prepares = [c for c in code.calls("prepare") if f"{file.path}:{c.lineno}" == str(scheduler.state["prepared_site"])]
    if not isinstance(node, ast.Call) or len(prepares) != 1 or not isinstance(prepares[0].func, ast.Attribute):
        return ()
    accelerator = prepares[0].func.value
    made = [s for s, _ in code.bindings(accelerator)]
    change = Change(file, "count the steps of all processes")
    counts = [a for p, n in _COUNTS.get(scheduler.short, ()) if (a := argument(node, p, n)) is not None]
    if not counts or (made and made[0].lineno > node.lineno):
        return ()
    for count in counts:
        if isinstance(count, ast.Constant) and count.value == 0:
            continue
        bare = isinstance(count, (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript)) or (
            isinstance(count, ast.BinOp) and isinstance(count.op, ast.Mult)
        )
        factor = f" * {source_of(file, accelerator)}.num_processes"
        if bare:
            change.insert(count.end_lineno or 0, count.end_col_offset or 0, factor)
        else:
            change.wrap(count, "(", f"){factor}")
    return change.patches()


def for_all_epochs(file: SourceFile, scheduler: Thing, outer: Block) -> tuple[Patch, ...]:
    """The length of one epoch multiplied by the number of epochs, where both stand in one function."""
    node, loop, code = scheduler.node, outer.node, syntax(file)
    if not isinstance(node, ast.Call) or not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return ()
    if outer.file is not file or scheduler.site.path != file.path or code.scope(node) is not code.scope(loop):
        return ()
    position, name = _COUNTS[scheduler.short][-1]
    given, counts = argument(node, position, name), loop.iter.args
    if given is None or last_name(loop.iter.func) not in ("range", "trange") or len(counts) != 1:
        return ()
    made = code.bindings(given) if isinstance(given, ast.Name) else []
    length = made[0][1] if len(made) == 1 else given
    first = min(n.lineno for n in (length, node))
    roots = [n for n in below(counts[0]) if isinstance(n, ast.Name)]
    if any(isinstance(n, ast.Call) for n in below(counts[0])) or any(
            s.lineno >= first for n in roots for s, _ in code.bindings(n) if code.scope(s) is code.scope(node)):
        return ()
    factor = f" * {source_of(file, counts[0])}"
    simple = isinstance(length, (ast.Call, ast.Name, ast.Attribute, ast.Subscript))
    change = Change(file, "as long as all epochs")
    if simple:
        return change.insert(length.end_lineno or 0, length.end_col_offset or 0, factor).patches()
    return change.wrap(length, "(", f"){factor}").patches()


def per_epoch(step: Event) -> tuple[Patch, ...]:
    """The step of a scheduler that counts epochs, behind the loop over batches."""
    code = syntax(step.file)
    statement, inner = code.statement(step.node), next(iter(code.loops(step.node)), None)
    if not _is_step(statement) or not isinstance(inner, ast.stmt) or code.parent(statement) is not inner:  # type: ignore[arg-type]
        return ()
    if not code.loops(inner) and code.function(inner) is None:
        return ()  # no loop over epochs around it
    return Change(step.file, "step the schedule once per epoch").move_after(statement, inner).patches()


def per_batch(step: Event, optimizer_step: Event) -> tuple[Patch, ...]:
    """The step of a scheduler that counts batches, behind the optimizer's step."""
    if step.file is not optimizer_step.file:
        return ()
    code = syntax(step.file)
    statement, target = code.statement(step.node), code.statement(optimizer_step.node)
    if not _is_step(statement) or target is None or code.scope(step.node) is not code.scope(optimizer_step.node):
        return ()
    return Change(step.file, "step the schedule after each optimizer step").move_after(statement, target).patches()


def _is_step(statement: ast.stmt | None) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and not statement.value.args


def held_at_its_end(cosine: Event) -> tuple[Patch, ...]:
    """The angle of a cosine held at pi once the schedule is over."""
    node = cosine.node
    if not isinstance(node, ast.Call) or len(node.args) != 1 or not cosine.name.startswith("math."):
        return ()
    pis = {
        written(n) for n in below(node.args[0]) if isinstance(n, (ast.Attribute, ast.Name)) and last_name(n) == "pi"
    }
    if len(pis) != 1:
        return ()
    change = Change(cosine.file, "hold the cosine at its end")
    return change.wrap(node.args[0], "min(", f", {pis.pop()})").patches()


def from_the_groups_own_rate(store: Event, assigned: ast.expr | None) -> tuple[Patch, ...]:
    """A factor of the group is applied to the rate that the group began with, and no longer to the current one."""
    code, node = syntax(store.file), store.node
    statement = code.statement(node)
    target = node if isinstance(node, ast.Subscript) else None
    if target is None or assigned is None or not isinstance(statement, ast.Assign):
        return ()
    group = written(target.value)
    others = [n for n in below(assigned) if isinstance(n, ast.Subscript) and written(n.value) == group
              and isinstance(n.slice, ast.Constant) and n.slice.value != "lr"]  # fmt: skip
    rates = [n for n in below(assigned) if written(n) == written(target) and isinstance(n, ast.Subscript)]
    if not others or not rates:
        return ()  # a factor of the time, which may be meant
    change = Change(store.file, "apply the group's factor to the rate that it began with")
    base = _base(code, statement, target) or f'{group}.setdefault("initial_lr", {source_of(store.file, target)})'
    for rate in rates:
        change.replace(rate, base)
    return change.patches()


def _base(code: Syntax, statement: ast.Assign, target: ast.Subscript) -> str:
    """The base rate of a warm-up beside it: `self.base_lr` of `group["lr"] = self.base_lr * t / warmup`."""
    found: set[str] = set()
    for other in code.of(ast.Assign):
        if other is statement or code.scope(other) is not code.scope(statement):
            continue
        if written(other.targets[0]) == written(target):
            found |= {written(n) for n in _factors(other.value) if _BASE.search(last_name(n))}
    return found.pop() if len(found) == 1 else ""


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    """The names that a product is made of, but for what it is divided by."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        yield from _factors(node.left)
        if isinstance(node.op, ast.Mult):
            yield from _factors(node.right)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        yield node


def goes_on(load: Place, built: Place) -> tuple[Patch, ...]:
    """A scheduler that goes on where the checkpoint was written: its state loaded, or its first step given."""
    file = load.event.file
    code = syntax(file)
    node = _call_beside(built, load)
    statement = code.statement(node) if node is not None else None
    if node is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ()
    name = statement.targets[0]
    return _loaded(file, code, load.event, statement, name) or _begun(file, code, node, name)


def _call_beside(built: Place, load: Place) -> ast.Call | None:
    """The call, in the function that loads, by which the scheduler is made."""
    calls = [b.node for b in built.path if b.kind == "call"] + [built.event.node]
    wanted = load.event.function.node if load.event.function else None
    code = syntax(load.event.file)
    found = [n for n in calls if isinstance(n, ast.Call) and code.parent(n) is not None and code.function(n) is wanted]
    return found[0] if found else None


def _loaded(file: SourceFile, code: Syntax, load: Event, statement: ast.Assign, name: ast.expr) -> tuple[Patch, ...]:
    """Where the checkpoint holds the scheduler's state: load it, and the optimizer's after it was built."""
    state = f"{written(name)}.state_dict()"
    saved = [k for d in code.of(ast.Dict) for k, v in zip(d.keys, d.values, strict=True) if written(v) == state]
    keys = [k.value for k in saved if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    given = load.node.args[0] if isinstance(load.node, ast.Call) and load.node.args else None
    loading = code.statement(load.node)
    if len(set(keys)) != 1 or not isinstance(given, ast.Subscript) or loading is None:
        return ()
    change = Change(file, "load the schedule's state, and the optimizer's after it was built")
    if code.parent(loading) is not code.parent(statement):
        return ()
    quoted = source_of(file, given.slice)[:1]
    load_it = f"{written(name)}.load_state_dict({source_of(file, given.value)}[{quoted}{keys[0]}{quoted}])"
    text = "\n".join(file.line(n).strip() for n in range(loading.lineno, (loading.end_lineno or loading.lineno) + 1))
    return change.delete(loading).after(statement, f"{text}\n{load_it}").patches()


def _begun(file: SourceFile, code: Syntax, node: ast.Call, name: ast.expr) -> tuple[Patch, ...]:
    """Where the loop that steps it counts from a number that the checkpoint sets: begin the schedule there."""
    function = code.scope(node)
    step = f"{written(name)}.step"
    steps = [c for c in code.calls("step") if written(c.func) == step and code.scope(c) is function]
    loop = next(iter(code.loops(steps[0])), None) if len(steps) == 1 else None
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or last_name(loop.iter.func) != "range":
        return ()
    start = loop.iter.args[0] if len(loop.iter.args) >= 2 else None
    if not isinstance(start, ast.Name) or not _zero_then_loaded(code, start) or isinstance(function, ast.Module):
        return ()
    if argument(node, 99, "last_epoch") is not None or last_name(node.func) in ("OneCycleLR", "SequentialLR"):
        return ()
    change = Change(file, "begin the schedule where the checkpoint was written")
    return change.pass_argument(node, "last_epoch", f"{start.id} - 1").patches()


def _zero_then_loaded(code: Syntax, start: ast.Name) -> bool:
    values = [v for _, v in code.bindings(start)]
    return len(values) == 2 and any(isinstance(v, ast.Constant) and v.value == 0 for v in values)


def bound_between(code: Syntax, first: ast.stmt, last: ast.stmt, names: set[str]) -> bool:
    """Whether any of these names is bound on the lines from one statement up to, not including, another."""
    scope = code.scope(last)
    for node in below(scope):
        line = getattr(node, "lineno", 0)
        if not first.lineno <= line < last.lineno:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names:
            return True
        if isinstance(node, (*FunctionNode, ast.ClassDef)) and node.name in names:
            return True
    return False


def reads(statement: ast.stmt) -> set[str]:
    """The names that a statement reads."""
    return {n.id for n in below(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
