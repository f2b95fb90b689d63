"""Hooks are registered anew in every step and never removed.

`register_forward_hook` and its kin add a callback that stays until `handle.remove()`. Registered in the training step,
directly or by a helper (`monitor.attach(model)`), step n runs n callbacks in each pass: the time of a step grows with
the step number, and so does what the callbacks hold. The loss is as it should be. Registered once an epoch the growth
is slower and the same. A registration behind a condition, on something that is made anew in the loop, or in a project
that removes handles is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import Lookup, lookup
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
    written,
)
from traindx_tools.rules import Rule

RULE = Rule(
    id="C310",
    name="hooks-pile-up",
    title="Hooks are registered again in every step and never removed",
    severity=Severity.HIGH,
    sees="A registration of a hook that a loop with backward reaches in each turn, on a model from before the loop, in "
         "a project that removes no handle.",
    matters="Step n runs n copies of the hook: each step is slower than the one before, and memory grows.",
    alike=("a history that grows with each step", "a graph that is kept", "a machine that throttles"),
    confirm=("print(sum(len(m._forward_hooks) for m in model.modules())) every hundred steps",),
)  # fmt: skip
_ON_MODULES = frozenset({
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook", "register_backward_hook",
    "register_full_backward_pre_hook", "register_step_post_hook", "register_step_pre_hook",
    "register_module_forward_hook",
})  # fmt: skip
_ON_PARAMETERS = frozenset({"register_hook", "register_post_accumulate_grad_hook"})
_INSIDE = frozenset({"modules", "named_modules", "children", "named_children", "parameters", "named_parameters"})
_STEPS = frozenset({"training_step", "on_train_batch_start", "on_before_optimizer_step", "on_train_epoch_start"})
_DEEP = 5


@dataclass(frozen=True)
class _Reached:
    """A node that a loop reaches in each turn: the loop, or the framework's hook, and how often it turns."""

    code: Syntax
    turn: ast.AST
    often: str
    by: tuple[Syntax, ast.Call] | None = None
    """The call on the way there that is nearest to the registration."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every registration of a project that trains and removes no handle."""
    names = (*_ON_MODULES, *_ON_PARAMETERS)
    if not any("_hook(" in f.text for f in project.files):
        return
    find = lookup(project)
    if any(_removes(code) for code in find.codes):
        return
    for code in find.codes:
        told: set[int] = set()
        for call in code.calls(*names) if "_hook(" in code.file.text else ():
            root = _lasting(code, call)
            if root is None or id(code.scope(call)) in told:
                continue
            reached = _reached(find, code, call, root, _DEEP)
            if reached is not None:
                told.add(id(code.scope(call)))
                yield _finding(code, call, reached)


def _removes(code: Syntax) -> bool:
    """Whether something removes a handle, or empties a module's hooks."""
    return any(not c.args and not c.keywords for c in code.calls("remove")) or "_hooks.clear()" in code.file.text or (
        "_hooks = " in code.file.text and "OrderedDict" in code.file.text)  # fmt: skip


def _lasting(code: Syntax, call: ast.Call) -> str | None:
    """The name that is hooked, where it outlives the call: a module or its parameters, nothing that is made here."""
    if not isinstance(call.func, ast.Attribute) or code.qualified(call.func).startswith("torch"):
        return "" if last_name(call.func) == "register_module_forward_hook" else None
    over = _inner_loops(code, call)
    if last_name(call.func) in _ON_PARAMETERS and not over:
        return None
    root = _root(over[-1].iter if over else call.func.value)
    made = code.assigned(root) if root is not None else None
    return None if root is None or isinstance(made, ast.Call) else root.id


def _root(node: ast.AST) -> ast.Name | None:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node if isinstance(node, ast.Name) else None


def _inner_loops(code: Syntax, node: ast.AST) -> list[ast.For]:
    """The loops around that go over the parts of a model, innermost first."""
    return [x for x in code.loops(node) if isinstance(x, ast.For) and _over_parts(x, node)]


def _over_parts(loop: ast.For, node: ast.AST) -> bool:
    """`for m in model.modules()`, and `for m in layers` where m is what is hooked."""
    over = loop.iter
    while isinstance(over, ast.Call) and last_name(over.func) in ("enumerate", "list", "reversed", "zip") and over.args:
        over = over.args[0]
    if isinstance(over, ast.Call) and last_name(over.func) in _INSIDE:
        return True
    hooks = isinstance(node, ast.Call) and last_name(node.func) in _ON_MODULES | _ON_PARAMETERS
    root = _root(node.func) if hooks and isinstance(node, ast.Call) else None
    return root is not None and root.id in names_in(loop.target)


def _reached(find: Lookup, code: Syntax, node: ast.Call, root: str, left: int) -> _Reached | None:
    """The loop that reaches a node in each turn without a condition; what is hooked (`root`) is not made in it."""
    if left <= 0 or _conditional(code, node):
        return None
    parts = {id(x) for x in _inner_loops(code, node)}
    around = [x for x in code.loops(node) if id(x) not in parts]
    if around:
        often = _turns(find, code, around[0])
        return None if often is None or root in _made_in(around[0]) else _Reached(code, around[0], often)
    body = code.function(node)
    if body is None:
        return None
    if body.name in _STEPS and root == "self" and code.owner(node) is not None:
        return _Reached(code, body, "epoch" if "epoch" in body.name else "step")
    for other, call in find.callers(body, code):
        found = _reached(find, other, call, _outside(body, call, root), left - 1)
        if found is not None:
            return _Reached(found.code, found.turn, found.often, (other, call))
    return None


def _made_in(loop: ast.AST) -> set[str]:
    """The names that a loop binds, its own targets as well."""
    return {n.id for n in below(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _outside(body: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, root: str) -> str:
    """What a name of the function is called where it is called; empty where that is not known."""
    if root == "self":
        given: ast.expr | None = call.func.value if isinstance(call.func, ast.Attribute) else None
    else:
        spec = [n for n in parameters(body) if n not in ("self", "cls")]
        given = argument(call, spec.index(root), root) if root in spec else None
    found = _root(given) if given is not None else None
    return found.id if found is not None else ""


def _conditional(code: Syntax, node: ast.AST) -> bool:
    """Whether a condition that is not about the part at hand decides, or the function may return before."""
    own = {n for x in _inner_loops(code, node) for n in names_in(x.target)}
    for up in code.above(node):
        if isinstance(up, (*FunctionNode, ast.Lambda)):
            early = [r for r in code.of(ast.Return) if code.function(r) is up and r.lineno < node.lineno]  # type: ignore[attr-defined]
            return any(isinstance(code.parent(r), ast.If) for r in early)
        if isinstance(up, (ast.If, ast.IfExp)) and not names_in(up.test) & own:
            return True
        if isinstance(up, Loops) and not (isinstance(up, ast.For) and _over_parts(up, node)):
            return False
    return False


def _turns(find: Lookup, code: Syntax, loop: ast.AST) -> str | None:
    """ "step" for a loop that itself calls what trains, "epoch" for one around such a loop."""
    inside = [c for c in below(loop) if isinstance(c, ast.Call)]
    direct = [c for c in inside if next(iter(code.loops(c)), None) is loop]
    if any(_trains(find, code, c, _DEEP) for c in direct):
        return "step"
    return "epoch" if any(_trains(find, code, c, _DEEP) for c in inside) or any(
        _trains(find, code, c, _DEEP, loops=True) for c in direct) else None  # fmt: skip


def _trains(find: Lookup, code: Syntax, call: ast.Call, left: int, loops: bool = False) -> bool:
    """Whether a call is backward, or a function of the project that calls it: outside of loops, or inside as well."""
    if last_name(call.func) in ("backward", "manual_backward"):
        return True
    called = find.function(code, call.func) if left > 0 else None
    if called is None or isinstance(called[1], ast.Lambda) or "backward" not in called[0].file.text:
        return False
    where, body = called
    return any(_trains(find, where, c, left - 1, loops) for c in below(body)
               if isinstance(c, ast.Call) and (loops or not where.loops(c)))  # fmt: skip


def _finding(code: Syntax, call: ast.Call, reached: _Reached) -> Finding:
    where, node = reached.by or (code, call)
    turn = reached.turn
    at = f"the loop at {reached.code.at(turn)}" if isinstance(turn, Loops) else f"{getattr(turn, 'name', '')}()"
    line = f", at line {call.lineno}," if reached.by is not None else ""
    kind = "forward hooks" if "forward" in last_name(call.func) else "hooks"
    return RULE.finding(
        f"{written(node)[:60]} at {where.at(node)} registers{line} {kind} again in every {reached.often} of {at}, and "
        "nothing removes them: hooks accumulate, so that each pass runs one more of them",
        where.place(node),
        where.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": reached.often, "registered_line": call.lineno},
    )
