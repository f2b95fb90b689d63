"""A hook keeps every activation of the run, with its graph.

`register_forward_hook` runs at every forward pass. A hook that appends its output to a list keeps the tensor and,
through it, the graph of that step with all saved activations: memory grows by about one forward pass a step until the
process is killed. The hook is often for a report and its list is read once, so nobody looks for it there. A hook that
replaces (`self.acts[name] = output`), cuts (`output.detach()`, `.item()`), is removed after one pass, or whose list is
emptied in each step is left alone. Gradients given to a backward hook carry no graph, but a tensor a step as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.hooks import Hook, carries, hooks
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import (
    FunctionNode,
    Loops,
    Syntax,
    argument,
    last_name,
    names_in,
    parameters,
    syntax,
    written,
)
from traindx_tools.rules import Rule

RULE = Rule(
    id="C225",
    name="hook-keeps-graph",
    title="A hook keeps the activations of every step with their graph",
    severity=Severity.HIGH,
    sees="A hook that appends what it is given to a list that outlives the step, without detach, and nothing empties.",
    matters="The graph of every past step stays alive: memory grows linearly until the process is killed.",
    alike=("losses kept with their graph", "hooks that are registered again in each step"),
    confirm=("print the length of the list over steps", "leave the hook out and watch the memory again"),
)
_KEEPING = frozenset({"append", "extend", "appendleft", "insert", "add"})
_EMPTYING = frozenset({"clear", "pop", "popleft", "popitem"})
_PER_STEP = re.compile(r"__exit__|__enter__|forward|training_step|(on_)?(train_)?batch|step|on_\w+", re.IGNORECASE)


@dataclass(frozen=True)
class _Kept:
    """What a hook keeps: the call or statement, the container as it is written and its last name, the value kept."""

    node: ast.Call | ast.AugAssign
    container: ast.expr
    name: str
    value: ast.expr


def check(project: Project) -> Iterator[Finding]:
    """Look at every hook that is registered in a project that trains."""
    codes = [syntax(f) for f in project.files if "torch" in f.text or "hook" in f.text]
    if not any(".backward(" in c.file.text or "training_step" in c.file.text for c in codes):
        return
    for hook in hooks(codes):
        if _suspended(hook.registered_in, hook.registration) or _removed(codes, hook):
            continue
        for kept in _keeps(hook):
            names = _known_as(codes, hook, kept)
            if names and _outlives(codes, hook, kept) and not any(_emptied(codes, hook, kept, n) for n in names):
                yield _finding(codes, hook, kept)


def _keeps(hook: Hook) -> Iterator[_Kept]:
    """The places where a hook adds what it is given to something that exists outside of it."""
    own = {n.id for n in below(hook.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in below(hook.function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING:
            container, value = node.func.value, node.args[-1] if node.args else None
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            container, value = node.target, node.value
        else:
            continue
        name = _name(container)
        if value is None or not name or name in own or name in hook.given or not carries(hook, value):
            continue
        yield _Kept(node, container, name, value)


def _name(node: ast.expr) -> str:
    """`acts` of `self.acts[name]`, of `acts` and of `self.acts.setdefault(name, [])`."""
    while isinstance(node, (ast.Subscript, ast.Call)):
        node = node.value if isinstance(node, ast.Subscript) else getattr(node.func, "value", node.func)
    return last_name(node)


def _suspended(code: Syntax, node: ast.AST) -> bool:
    """Whether the hook is registered for passes without a graph: under no_grad, or in a function that has it."""
    function = code.function(node)
    text = written(function) if function is not None else ""
    return ("no_grad" in text or "inference_mode" in text) and "backward(" not in text


def _removed(codes: list[Syntax], hook: Hook) -> bool:
    """Whether the hook goes again soon: removed in the function that registers it, in a loop, or by a `with`."""
    here = hook.registered_in
    function, owner = here.function(hook.registration), here.owner(hook.registration)
    for call in here.calls("remove"):
        around = here.function(call)
        if around is not None and around is function and not _trains(function, hook):
            return True
        if here.loops(call) and around is not function and owner is None:
            return True
        own = around is not None and owner is not None and here.owner(call) is owner
        if around is not None and own and (around.name == "__exit__" or _called_in_loop(codes, around.name)):
            return True
    return False


def _called_in_loop(codes: list[Syntax], name: str) -> bool:
    return any(code.loops(use) for code in codes for use in code.calls(name))


def _trains(function: ast.AST | None, hook: Hook) -> bool:
    """Whether a loop with backward stands behind the registration in the same function."""
    return function is not None and any(
        isinstance(n, Loops) and n.lineno > hook.registration.lineno and "backward(" in written(n)
        for n in below(function)
    )


def _known_as(codes: list[Syntax], hook: Hook, kept: _Kept) -> set[str]:
    """The container's name, and those of the arguments where it is handed to whoever makes the hook; empty: unknown."""
    if isinstance(kept.container, ast.Attribute):
        return {kept.name}
    for up in hook.code.above(hook.function):
        if isinstance(up, FunctionNode) and kept.name in parameters(up):
            given_names = [n for n in parameters(up) if n not in ("self", "cls")]
            if kept.name not in given_names:
                return {kept.name}  # the object itself, which keeps what its hook appends
            position = given_names.index(kept.name)
            calls = [call for c in codes for call in c.calls(up.name)]
            given = [argument(call, position, kept.name) for call in calls]
            names = {_name(g) for g in given if g is not None}
            return {kept.name, *names} if names and "" not in names else set()
    return {kept.name}


def _outlives(codes: list[Syntax], hook: Hook, kept: _Kept) -> bool:
    """Whether the container lives longer than a step; a list of a function that returns soon does not."""
    code = hook.code
    base = kept.container
    while isinstance(base, (ast.Subscript, ast.Call)):
        base = base.value if isinstance(base, ast.Subscript) else getattr(base.func, "value", base.func)
    if isinstance(base, ast.Attribute):
        return True
    for up in code.above(hook.function):
        if isinstance(up, FunctionNode) and (kept.name in parameters(up) or _binds(up, kept.name)):
            if kept.name in parameters(up):
                return True  # made by whoever made the hook
            return _trains(up, hook) or any(
                isinstance(n, Loops) and n.lineno > hook.registration.lineno and _calls_training(codes, n)
                for n in below(up)
            )
    return True


def _binds(function: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in below(function))


def _calls_training(codes: list[Syntax], loop: ast.AST) -> bool:
    called = {last_name(n.func) for n in below(loop) if isinstance(n, ast.Call)}
    functions = (f for c in codes for f in c.of(ast.FunctionDef) if f.name in called)
    return any("backward(" in written(f) for f in functions)


def _emptied(codes: list[Syntax], hook: Hook, kept: _Kept, name: str) -> bool:
    """Whether the container is bounded, or emptied or replaced anywhere but where it is first made."""
    inside = {id(n) for n in below(hook.function)}
    for code in codes:
        for node, value in _stores(code, name):
            if "maxlen" in written(value):
                return True
            function = code.function(node)
            first = function is None or function.name in ("__init__", "__post_init__") or id(node) in inside
            if isinstance(node, ast.Assign) and code is hook.code and not isinstance(node.targets[0], ast.Attribute):
                first = first or not code.loops(node)
            if not first and _runs(codes, function):
                return True
            if code.loops(node) and not (id(node) in inside or _fills(node)):
                return True
        for call in code.calls(*_EMPTYING):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            own = owner is not None and (_name(owner) == name or _loops_over(code, call, name))
            if own and _runs(codes, code.function(call)):
                return True
        if any(_name(t) == name for d in code.of(ast.Delete) for t in d.targets):
            return True
    return _bounded(hook, kept)


def _stores(code: Syntax, name: str) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Assignments to the container or to its entries."""
    for node in code.of(ast.Assign):
        for target in node.targets:
            if _name(target) == name and not isinstance(target, (ast.Tuple, ast.List)):
                yield node, node.value
    for annotated in code.of(ast.AnnAssign):
        if annotated.value is not None and _name(annotated.target) == name:
            yield annotated, annotated.value


def _fills(node: ast.stmt) -> bool:
    """`acts[name] = []` in the loop over layers that registers the hooks."""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    return isinstance(target, ast.Subscript)


def _loops_over(code: Syntax, call: ast.Call, name: str) -> bool:
    """`for values in acts.values(): values.clear()`."""
    return any(isinstance(x, ast.For) and name in written(x.iter) for x in code.loops(call))


def _runs(codes: list[Syntax], function: ast.AST | None) -> bool:
    """Whether a function is called by anybody, or by a framework."""
    if not isinstance(function, FunctionNode):
        return True
    return _PER_STEP.match(function.name) is not None or any(c.calls(function.name) for c in codes)


def _bounded(hook: Hook, kept: _Kept) -> bool:
    """Whether the hook itself stops: it looks at the container's length, or at whether it is there already."""
    tests = [n.test for n in below(hook.function) if isinstance(n, (ast.If, ast.IfExp, ast.While))]
    return any(kept.name in written(t) for t in tests)


def _conditional(hook: Hook, kept: _Kept) -> bool:
    """Whether a switch decides if anything is kept at all."""
    usual = re.compile(r"isinstance|is_tensor|\.training|requires_grad|is not None|is None|hasattr|len\(")
    tests = [n.test for n in below(hook.function) if isinstance(n, ast.If)]
    return any(not usual.search(written(t)) for t in tests)


def _finding(codes: list[Syntax], hook: Hook, kept: _Kept) -> Finding:
    code, gradient = hook.code, hook.backward
    what = "the gradient" if gradient else "what the layer gave, with its graph,"
    loose = gradient or _conditional(hook, kept) or any(c.calls("remove") for c in codes if "hook" in c.file.text)
    return RULE.finding(
        f"{code.file.segment(kept.node)} at {code.at(kept.node)} keeps {what} at every pass of the hook registered at "
        f"{hook.registered_in.at(hook.registration)}; nothing empties {written(kept.container)}: memory grows with "
        "every step",
        code.place(kept.node),
        code.file.path,
        bearing=Bearing.SIGN if loose else Bearing.CAUSE,
        severity=Severity.MEDIUM if gradient else None,
        measured={"kind": "gradients" if gradient else "activations", "container": written(kept.container)},
        patch=() if gradient else _patch(codes, hook, kept),
    )


_REDUCED = frozenset({"mean", "sum", "std", "var", "norm", "max", "min"})


def _patch(codes: list[Syntax], hook: Hook, kept: _Kept) -> tuple[Patch, ...]:
    """A number kept as a number; a tensor replaced by the newest where only the newest is read, else cut."""
    file, value, node = hook.code.file, kept.value, kept.node
    text = source_of(file, value)
    if isinstance(value, ast.Call) and last_name(value.func) in _REDUCED and not value.args and not value.keywords:
        return Change(file, "keep the number, not its graph").wrap(value, "", ".item()").patches()
    if not isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
        return ()
    appended = isinstance(node, ast.Call) and last_name(node.func) == "append"
    if appended and not isinstance(kept.container, (ast.Name, ast.Call)) and _only_newest(codes, hook, kept):
        target = source_of(file, kept.container)
        change = Change(file, "keep the newest one, without its graph")
        return change.replace(hook.code.statement(node), f"{target} = [{text}.detach()]").patches()
    return Change(file, "keep the value, not its graph").wrap(value, "", ".detach()").patches()


def _only_newest(codes: list[Syntax], hook: Hook, kept: _Kept) -> bool:
    """Whether every function that reads the container reads only the last of what was appended."""
    inside = {id(n) for n in below(hook.function)}
    readers: dict[int, ast.AST] = {}
    for code in codes:
        nodes: list[ast.expr] = [*code.of(ast.Attribute), *code.of(ast.Name)]
        for node in nodes:
            up = code.parent(node)
            stored = isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Store)
            loaded = isinstance(getattr(node, "ctx", None), ast.Load) and last_name(node) == kept.name
            if loaded and not stored and id(node) not in inside:
                scope = code.scope(node)
                readers[id(scope)] = scope
    return bool(readers) and all(
        isinstance(r, FunctionNode) and "[-1]" in written(r) and not names_in(r) & {"sum", "len", "torch", "enumerate"}
        for r in readers.values()
    )
