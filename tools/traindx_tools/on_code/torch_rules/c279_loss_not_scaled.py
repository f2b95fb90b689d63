"""One of several losses goes backward without the gradient scaler.

`scaler.step(optimizer)` divides all gradients of the optimizer by the loss scale, 65,536 at first. What came from
`scaler.scale(loss).backward()` is right after that; what came from a plain `loss.backward()` beside it is too small by
the scale. The parameters that only the plain loss reaches do not move, and a larger weight for that loss seems to be
what is missing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C279",
    name="loss-not-scaled",
    title="One of the losses is backpropagated without the gradient scaler",
    severity=Severity.HIGH,
    sees="loss.backward() beside scaler.scale(other).backward(), before the scaler.step() that divides both.",
    matters="The gradients of that loss are too small by the loss scale: what only it reaches does not train.",
    alike=("a weight of the second loss that is too small", "underflow of float16 gradients"),
    confirm=("print the gradient norm of each loss alone, after scaler.unscale_(optimizer)",),
)
_CLEARS = ("step", "zero_grad")


def check(project: Project) -> Iterator[Finding]:
    """Look at every call of backward in a function that scales another loss."""
    for file in project.files:
        if "GradScaler" not in file.text and "scaler" not in file.text:
            continue
        code = syntax(file)
        calls = [c for c in code.calls("backward") if isinstance(c.func, ast.Attribute)]
        scaled = [(c, s) for c in calls if (s := _scaler_of(code, c)) is not None]
        known = {id(c) for c, _ in scaled}
        for plain in calls:
            if id(plain) in known or not _is_loss(code, plain):
                continue
            beside = next(((c, s) for c, s in scaled if _together(code, plain, c, s)), None)
            if beside is not None:
                yield _finding(code, plain, *beside)


def _scaler_of(code: Syntax, backward: ast.Call) -> ast.expr | None:
    """The scaler of `scaler.scale(loss).backward()`, the product written there or held by a name."""
    node = backward.func.value if isinstance(backward.func, ast.Attribute) else backward
    parts = [node, *([v for _, v in code.bindings(node)] if isinstance(node, (ast.Name, ast.Attribute)) else [])]
    for part in parts:
        for call in (n for n in below(part) if isinstance(n, ast.Call) and n.args):
            scales = isinstance(call.func, ast.Attribute) and call.func.attr == "scale"
            if scales and isinstance(call.func, ast.Attribute) and _is_scaler(code, call.func.value):
                return call.func.value
    return None


def _is_scaler(code: Syntax, node: ast.expr) -> bool:
    made = code.origin(node)
    if isinstance(made, ast.Call) and "Scaler" in last_name(made.func):
        enabled = argument(made, 99, "enabled")
        return not (isinstance(enabled, ast.Constant) and enabled.value is False)
    return "scaler" in last_name(node).lower()


def _is_loss(code: Syntax, backward: ast.Call) -> bool:
    """A tensor's own backward: no engine's, no module's, none that is divided or multiplied by the scale by hand."""
    owner = backward.func.value if isinstance(backward.func, ast.Attribute) else backward
    if isinstance(owner, ast.Name) and (owner.id in code.aliases or owner.id in ("self", "super")):
        return False
    given = argument(backward, 0, "gradient")
    made = [v for _, v in code.bindings(owner)] if isinstance(owner, (ast.Name, ast.Attribute)) else [owner]
    texts = " ".join([written(owner), written(given), *(written(v) for v in made)])
    engine = isinstance(owner, ast.Attribute) or any(n in texts for n in ("accelerator", "fabric", "engine", "manager"))
    return "scale" not in texts and not (engine and given is not None) and not any(
        n in texts for n in ("accelerator", "fabric", "autograd"))  # fmt: skip


def _together(code: Syntax, plain: ast.Call, scaled: ast.Call, scaler: ast.expr) -> bool:
    """Whether both gradients are in one step of the scaler: one function, no other branch, nothing between them."""
    if code.function(plain) is not code.function(scaled) or code.loops(plain)[:1] != code.loops(scaled)[:1]:
        return False
    if _of_two_branches(code, plain, scaled):
        return False
    first, last = sorted((plain.lineno, scaled.lineno))
    here = [c for c in code.calls(*_CLEARS) if code.function(c) is code.function(plain)]
    if any(first <= c.lineno <= last for c in here):
        return False
    after = sorted((c for c in here if c.lineno > last and last_name(c.func) == "step"), key=lambda c: c.lineno)
    return bool(after) and isinstance(after[0].func, ast.Attribute) and bool(after[0].args) and \
        written(after[0].func.value) == written(scaler) and not _of_two_branches(code, plain, after[0])  # fmt: skip


def _of_two_branches(code: Syntax, one: ast.AST, other: ast.AST) -> bool:
    """Whether a condition chooses between two places."""
    ways = {id(up): _side(code, up, one) for up in code.above(one) if isinstance(up, (ast.If, ast.Try))}
    for up in code.above(other):
        if id(up) in ways and isinstance(up, (ast.If, ast.Try)) and ways[id(up)] != _side(code, up, other):
            return True
    return any(isinstance(up, ast.If) and _about_precision(up) and not _inside(code, up, other)
               for up in code.above(one))  # fmt: skip


def _about_precision(branch: ast.If) -> bool:
    """`if not use_amp:` around the plain call is a way of its own, even where it leaves by a return."""
    text = written(branch.test).lower()
    return any(w in text for w in ("amp", "scaler", "fp16", "half", "mixed", "precision", "autocast"))


def _inside(code: Syntax, branch: ast.If, node: ast.AST) -> bool:
    return any(up is branch for up in code.above(node))


def _side(code: Syntax, branch: ast.If | ast.Try, node: ast.AST) -> str:
    """Which list of statements of a condition holds a node."""
    around = {id(node), *(id(up) for up in code.above(node))}
    for name in ("body", "orelse", "handlers", "finalbody"):
        if any(id(s) in around for s in getattr(branch, name, [])):
            return name
    return ""


def _finding(code: Syntax, plain: ast.Call, scaled: ast.Call, scaler: ast.expr) -> Finding:
    owner = plain.func.value if isinstance(plain.func, ast.Attribute) else plain
    change = Change(code.file, "scale this loss as well").wrap(owner, f"{written(scaler)}.scale(", ")")
    return RULE.finding(
        f"{written(plain)[:60]} at {code.at(plain)} is not scaled: {written(scaler)}.step() divides its gradients by "
        f"the loss scale like those of the scaled loss at line {scaled.lineno}: they are too small by that factor",
        code.place(plain),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "plain", "loss": written(owner)[:60], "scaled_line": scaled.lineno},
        patch=change.patches(),
    )
