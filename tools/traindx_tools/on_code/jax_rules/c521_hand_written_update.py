"""A hand-written update climbs the loss, or cuts its own leaf.

`params + lr * grads` moves up the gradient. In torch, `w = w - lr * w.grad` outside `no_grad` makes w a result instead
of a parameter: its next gradient is None; in place (`w -= ...`) torch refuses to change a leaf.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.bootstrapping import suspended
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C521",
    name="hand-written-update",
    title="A hand-written update goes up the gradient",
    severity=Severity.CRITICAL,
    sees="p + lr * g over trees of parameters and gradients, p += lr * p.grad, add_(p.grad) with a positive factor.",
    matters="The loss rises from the first step, or nothing is trained after it.",
    alike=("an attack, or an ascent in a minimax game, on purpose",),
    confirm=("print the loss before and after one step with a tiny rate",),
)
_ASCENT = re.compile(
    r"ascent|advers|attack|perturb|maximi[sz]e|\bdelta|fgsm|pgd|saliency|dream|\bsam\b|sharpness", re.I
)
_MAPS = ("tree_map", "map", "tree_multimap")
_WEIGHTS = re.compile(r"(p|param|params|w|weights?|b|bias|theta|phi|parameters?)\w{0,3}", re.IGNORECASE)
_RATES = re.compile(r"(\w*_)?(lr|learning_rate|step_size|eta|alpha|rate)", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every update by hand."""
    for file in project.files:
        if "grad" not in file.text or not ("jax" in file.text or "torch" in file.text):
            continue
        code = syntax(file)
        for node, update, kind in _updates(code):
            function = code.function(node)
            if not _ASCENT.search(written(function) if function is not None else file.text):
                yield _finding(code, node, update, kind)


def _updates(code: Syntax) -> Iterator[tuple[ast.AST, ast.AST, str]]:
    for call in code.calls(*_MAPS):
        step = argument(call, 0, "f")
        if isinstance(step, ast.Lambda) and len(call.args) >= 3 and "grad" in written(call.args[2]).lower():
            names = [a.arg for a in step.args.args]
            if len(names) >= 2 and _climbs(code, step.body, names[0], names[1]) and _of_these(code, call):
                yield step.body, step.body, "sign"
    for pair in code.of(ast.BinOp):
        if isinstance(pair.op, ast.Add) and isinstance(pair.left, ast.Name) and _paired(code, pair):
            yield pair, pair, "sign"
    for node in code.of(ast.AugAssign):
        target = written(node.target).replace(".data", "")
        if isinstance(node.op, (ast.Add, ast.Sub)) and f"{target}.grad" in written(node.value):
            positive = _positive(code, node.value, f"{target}.grad")
            if isinstance(node.op, ast.Add) and positive and _WEIGHTS.fullmatch(target.rpartition(".")[2]):
                yield node, node, "sign"
            elif not suspended(code, node) and ".data" not in written(node.target) and "jax" not in code.file.text:
                yield node, node, "leaf"
    for assigned in code.of(ast.Assign):
        target, value = written(assigned.targets[0]), assigned.value
        added = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and f"{target}.grad" in written(value)
        named = added and _WEIGHTS.fullmatch(target.rpartition(".")[2]) is not None
        if named and isinstance(value, ast.BinOp) and _positive(code, value.right, f"{target}.grad"):
            yield assigned, assigned, "sign"
    for call in code.calls("add_"):
        yield from _added(code, call)


def _of_these(code: Syntax, call: ast.Call) -> bool:
    """Whether the gradients may be those of what is updated: a call that made them got it (a sampler's did not)."""
    updated, made = written(call.args[1]), code.origin(call.args[2])
    if not isinstance(made, ast.Call):
        return True
    given = [written(n) for a in (*made.args, *(k.value for k in made.keywords)) for n in below(a)]
    return updated in given or not made.args or isinstance(code.origin(call.args[1]), ast.Call)


def _paired(code: Syntax, node: ast.BinOp) -> bool:
    """`[(w + lr * dw) for w, dw in zip(params, grads)]`: a rate times what runs over the gradients."""
    if not (isinstance(node.right, ast.BinOp) and isinstance(node.right.op, ast.Mult)):
        return False
    for up in code.above(node):
        generators = up.generators if isinstance(up, (ast.ListComp, ast.GeneratorExp)) else []
        for over in generators:
            call = over.iter
            zipped = isinstance(call, ast.Call) and last_name(call.func) == "zip" and len(call.args) == 2
            if not zipped or not isinstance(call, ast.Call) or not isinstance(over.target, ast.Tuple):
                continue
            first, second = (names_in(t) for t in over.target.elts[:2])
            trained = (
                isinstance(node.left, ast.Name) and node.left.id in first and "grad" in written(call.args[1]).lower()
            )
            for factor, rest in ((node.right.left, node.right.right), (node.right.right, node.right.left)):
                if trained and isinstance(rest, ast.Name) and rest.id in second and _rate(code, factor):
                    return True
        if isinstance(up, ast.stmt):
            return False
    return False


def _added(code: Syntax, call: ast.Call) -> Iterator[tuple[ast.AST, ast.AST, str]]:
    """`p.data.add_(p.grad, alpha=lr)`."""
    owner = written(call.func.value).replace(".data", "") if isinstance(call.func, ast.Attribute) else ""
    first = call.args[0] if call.args else None
    if first is None or f"{owner}.grad" not in written(first) or not _WEIGHTS.fullmatch(owner.rpartition(".")[2]):
        return
    alpha = argument(call, 99, "alpha")
    positive = _positive(code, first, f"{owner}.grad") and (alpha is None or _rate(code, alpha))
    if positive and (alpha is not None or isinstance(first, ast.BinOp)):
        yield call, call, "sign"


def _climbs(code: Syntax, body: ast.expr, parameter: str, gradient: str) -> bool:
    """Whether it is parameter + rate * gradient."""
    if not (isinstance(body, ast.BinOp) and isinstance(body.op, ast.Add)):
        return False
    return written(body.left) == parameter and _positive(code, body.right, gradient)


def _positive(code: Syntax, node: ast.expr, gradient: str) -> bool:
    """Whether it is a positive multiple of the gradient, as far as it is written."""
    if written(node) in (gradient, f"{gradient}.data"):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for factor, rest in ((node.left, node.right), (node.right, node.left)):
            if written(rest) in (gradient, f"{gradient}.data"):
                return _rate(code, factor)
    return False


def _rate(code: Syntax, node: ast.expr) -> bool:
    """Whether a factor is a positive number, or a learning rate by its name."""
    number = code.number(node)
    if number is not None:
        return number > 0
    return isinstance(node, (ast.Name, ast.Attribute)) and _RATES.fullmatch(last_name(node)) is not None


def _finding(code: Syntax, node: ast.AST, update: ast.AST, kind: str) -> Finding:
    patch: tuple[Patch, ...] = ()
    alone = not isinstance(code.parent(update), ast.Tuple)  # of several on one line, one patch would leave the others
    if kind == "sign" and isinstance(update, ast.BinOp) and alone:
        text = f"{written(update.left)} - {written(update.right)}"
        made = patching.replace_text(code.file, update, text, "down the gradient")
        patch = (made,) if made is not None else ()
    why = (
        "adds a positive multiple of the gradient: every step climbs the loss"
        if kind == "sign"
        else "changes a leaf in place while autograd records: torch refuses it (use torch.no_grad())"
    )
    return RULE.finding(
        f"{code.file.segment(node)} at {code.at(node)} {why}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.CRITICAL if kind == "sign" else Severity.HIGH,
        measured={"kind": kind},
        patch=patch,
    )
