"""A hand-written update of a tree does not give new parameters.

`tree_map(lambda p, g: p - lr * g, params, grads)` goes leaf by leaf, in the order of its arguments. With the two trees
swapped it gives `grads - lr * params`; with the lambda written from the wrong end, `lr * g - p`, the weights change
their sign in every step; `-lr * g` alone replaces the weights by the step. `grads, loss = value_and_grad(f)(params)`
takes the loss for the gradients. New parameters that are bound to a name of their own, while the old ones are returned,
are lost.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C545",
    name="wrong-leaves-updated",
    title="A hand-written update does not give new parameters",
    severity=Severity.CRITICAL,
    sees="The trees, and the form, of a tree_map over parameters and gradients; the two results of value_and_grad; new "
         "parameters that nothing reads.",
    matters="The parameters are replaced by something else, or never change.",
    alike=("a map that gives an update, which is added later", "gradients that are rescaled by the parameters"),
    confirm=("compare a leaf of the parameters before and after one step with a tiny rate",),
)
_MAPS = ("tree_map", "map", "tree_multimap")
_GRADIENTS = re.compile(r"(d_?)?grads?(ients?)?\w?|\w*_grads?", re.IGNORECASE)
_PARAMETERS = re.compile(r"(new_)?(params?|parameters|weights|theta|variables)\w?|\w*_params", re.IGNORECASE)
_LOSSES = re.compile(r"\w*(loss|value|val|cost|objective|nll)\w?", re.IGNORECASE)
_NEW = re.compile(r"(new|updated|next)_?(params|parameters|weights|theta)|(params|weights|theta)_?(new|next)")
_RATES = re.compile(r"(\w*_)?(lr|learning_rate|step_size|eta|alpha|rate)", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every map over parameters and gradients, and at what value_and_grad gives."""
    for file in project.files:
        if "jax" not in file.text or "grad" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls(*_MAPS):
            if code.qualified(call.func) in ("jax.tree_util.tree_map", "jax.tree_map", "jax.tree.map"):
                yield from _mapped(code, call)
        for statement in code.of(ast.Assign):
            yield from _swapped(code, statement)
        yield from _lost(code)


def _mapped(code: Syntax, call: ast.Call) -> Iterator[Finding]:
    step = argument(call, 0, "f")
    if not isinstance(step, ast.Lambda) or len(call.args) != 3 or len(step.args.args) != 2:
        return
    (first, second), trees = (a.arg for a in step.args.args), [written(a) for a in call.args[1:]]
    statement = code.statement(call)
    target = written(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    body = step.body
    if _PARAMETERS.fullmatch(trees[1]) and _GRADIENTS.fullmatch(trees[0]):
        if _descends(code, body, first, second) and _PARAMETERS.fullmatch(target):
            texts = [source_of(code.file, a) for a in call.args[1:]]
            change = Change(code.file, "parameters first").replace(call.args[1], texts[1])
            yield _finding(code, call, "trees", f"{written(call)[:90]} subtracts the parameters from the gradients: "
                           "the trees are swapped", change.replace(call.args[2], texts[0]).patches())  # fmt: skip
    elif _PARAMETERS.fullmatch(trees[0]) and _GRADIENTS.fullmatch(trees[1]) and target == trees[0]:
        if isinstance(body, ast.BinOp) and isinstance(body.op, ast.Sub) and written(body.right) == first and _scaled(
                code, body.left, second):  # fmt: skip
            text = f"{first} - {source_of(code.file, body.left)}"
            yield _finding(code, body, "reversed", f"{written(body)} takes the parameters from the step: they change "
                           "their sign every time",
                           Change(code.file, "down the gradient").replace(body, text).patches())  # fmt: skip
        elif first not in names_in(body) and _scaled(code, body, second):
            yield _finding(code, body, "replaced", f"{target} becomes {written(body)}, the step alone: the parameters "
                           "are not in it", ())  # fmt: skip


def _descends(code: Syntax, body: ast.expr, first: str, second: str) -> bool:
    return isinstance(body, ast.BinOp) and isinstance(body.op, ast.Sub) and written(body.left) == first and _scaled(
        code, body.right, second)  # fmt: skip


def _scaled(code: Syntax, node: ast.expr, name: str) -> bool:
    """A multiple of a leaf by a rate: `lr * g`, `-lr * g`, `g * 0.1`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return written(node.operand) == name or _scaled(code, node.operand, name)
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    for factor, leaf in ((node.left, node.right), (node.right, node.left)):
        bare = factor.operand if isinstance(factor, ast.UnaryOp) else factor
        if written(leaf) == name:
            return code.number(bare) is not None or _RATES.fullmatch(last_name(bare)) is not None
    return False


def _swapped(code: Syntax, statement: ast.Assign) -> Iterator[Finding]:
    """`grads, loss = value_and_grad(f)(params)`."""
    target, call = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(call, ast.Call):
        return
    maker = call.func if isinstance(call.func, ast.Call) else code.origin(call.func)
    if not isinstance(maker, ast.Call) or last_name(maker.func) not in ("value_and_grad", "filter_value_and_grad"):
        return
    if not code.qualified(maker.func).startswith(("jax.", "equinox.", "flax.")):
        return
    names = [e.id if isinstance(e, ast.Name) else "" for e in target.elts]
    if _GRADIENTS.fullmatch(names[0]) and _LOSSES.fullmatch(names[1]):
        change = Change(code.file, "value first").replace(target, f"{names[1]}, {names[0]}")
        yield _finding(code, target, "results", f"{written(target)} takes the results of value_and_grad in the wrong "
                       f"order: {names[0]} is the value, and {names[1]} the gradients", change.patches())  # fmt: skip


def _lost(code: Syntax) -> Iterator[Finding]:
    """New parameters under a name of their own that nothing reads, where the old ones are returned."""
    for statement in code.of(ast.Assign):
        target, body = statement.targets[0], code.function(statement)
        if not isinstance(target, ast.Name) or not _NEW.fullmatch(target.id) or body is None:
            continue
        read = any(isinstance(n, ast.Name) and n.id == target.id and not isinstance(n.ctx, ast.Store)
                   for n in below(body))  # fmt: skip
        call = statement.value
        made = isinstance(call, ast.Call) and (code.qualified(call.func) in (
            "jax.tree_util.tree_map", "jax.tree_map", "jax.tree.map", "optax.apply_updates") and len(call.args) > 1)
        if read or not made or not isinstance(call, ast.Call):
            continue
        old = written(call.args[0] if last_name(call.func) == "apply_updates" else call.args[1])
        returns = [n for n in below(body) if isinstance(n, ast.Return) and n.value is not None]
        if any(old in {written(e) for e in (r.value.elts if isinstance(r.value, ast.Tuple) else [r.value])}
               for r in returns):  # fmt: skip
            yield _finding(code, statement, "not returned", f"{target.id} is read nowhere, and {old}, the parameters "
                           "before the step, are returned",
                           Change(code.file, "go on with the new ones").replace(target, old).patches())  # fmt: skip


def _finding(code: Syntax, node: ast.AST, kind: str, why: str, patch: tuple[Patch, ...]) -> Finding:
    return RULE.finding(f"{why} (at {code.at(node)})", code.place(node), code.file.path, bearing=Bearing.CAUSE,
                        measured={"kind": kind}, patch=patch)  # fmt: skip
