"""Steps whose loss a framework sends back, while every model output behind it is computed under `no_grad`.

In distillation it is the student's forward pass that slipped into the teacher's block. Every other call behind the loss
has to be one of torch or a criterion: whatever may hold parameters outside the block leaves the answer open.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, written
from traindx_tools.on_code.trained_sum import behind, trained

_STEPS = ("training_step", "compute_loss")
_OFF = ("no_grad", "inference_mode")
_PLAIN = re.compile(r"loss|criter|metric|temperature|log|hparams|float|item|device|(^|_)(ce|bce|mse|kl|kld)(_|$|\d)",
                    re.IGNORECASE)  # fmt: skip
_FIXED = re.compile(r"teach|target|ema|frozen|ref|momentum|old|prior|expert|guide", re.IGNORECASE)
_BUILT_IN = frozenset({"len", "float", "int", "max", "min", "range", "zip", "enumerate", "sum", "dict", "list", "tuple",
                       "isinstance", "getattr", "print", "abs", "bool", "super"})  # fmt: skip
_NEW_LEAF = frozenset({"requires_grad_", "enable_grad", "set_grad_enabled", "Parameter"})


@dataclass(frozen=True)
class Ungraphed:
    """The step, the loss that it gives, and the last forward pass of the trained model that stands under no_grad."""

    code: Syntax
    step: ast.FunctionDef
    loss: ast.expr
    forward: ast.stmt
    block: ast.With


def ungraphed(look: Lookup) -> Iterator[Ungraphed]:
    """Every step of a framework whose loss has no graph."""
    for name in _STEPS:
        for code, step in look.functions.get(name, []):
            if any(off in code.file.text for off in _OFF) and code.owner(step) is not None:
                found = _judged(look, code, step)
                if found is not None:
                    yield found


def _judged(look: Lookup, code: Syntax, step: ast.FunctionDef) -> Ungraphed | None:
    losses = list({written(v): v for v in trained(code, step, look)}.values())
    blocks = [n for n in below(step) if isinstance(n, ast.With) and any(_is_off(i.context_expr) for i in n.items)]
    if len(losses) != 1 or not blocks:
        return None
    if any(last_name(n.func) in _NEW_LEAF for n in below(step) if isinstance(n, ast.Call)):
        return None
    names = behind(step, losses)
    inside = {id(n) for b in blocks for n in below(b)}
    for node in below(step):
        part = _contributes(node, names)
        if part is not None and id(node) not in inside and _may_hold_graph(look, code, part):
            return None
    if _may_hold_graph(look, code, losses[0]):
        return None
    for block in blocks:
        made = [s for s in block.body if _contributes(s, names) is not None and _forward(look, code, s)]
        if made and id(made[-1]) in inside:
            return Ungraphed(code, step, losses[0], made[-1], block)
    return None


def _may_hold_graph(look: Lookup, code: Syntax, part: ast.expr) -> bool:
    return not all(_plain(look, code, c) for c in _calls(part)) or _parameter(code, part)


def _is_off(node: ast.expr) -> bool:
    return last_name(node.func if isinstance(node, ast.Call) else node) in _OFF


def _contributes(node: ast.AST, names: set[str]) -> ast.expr | None:
    """The value of an assignment to one of these names; what a loop over one of them runs over."""
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return node.value if any(names_in(t) & names for t in targets) else None
    if isinstance(node, ast.NamedExpr):
        return node.value if node.target.id in names else None
    return node.iter if isinstance(node, (ast.For, ast.comprehension)) and names_in(node.target) & names else None


def _calls(node: ast.expr) -> list[ast.Call]:
    return [n for n in below(node) if isinstance(n, ast.Call)]


def _plain(look: Lookup, code: Syntax, call: ast.Call) -> bool:
    """Whether a call certainly holds no parameters: torch's own, a criterion, a method of a tensor."""
    func = call.func
    if code.qualified(func).startswith("torch."):
        return True
    if _PLAIN.search(last_name(func)):
        return last_name(func) not in look.functions and last_name(func) not in _STEPS
    if isinstance(func, ast.Name):
        return func.id in _BUILT_IN
    head = func.value if isinstance(func, ast.Attribute) else None
    while isinstance(head, (ast.Attribute, ast.Subscript, ast.Call)):
        head = head.func if isinstance(head, ast.Call) else head.value
    return isinstance(head, ast.Name) and head.id not in ("self", "model") and not re.search("model|net", head.id)


def _forward(look: Lookup, code: Syntax, statement: ast.stmt) -> bool:
    """Whether a statement runs the trained model: self(x), self.part(x), model(x), and no teacher."""
    value = getattr(statement, "value", None)
    calls = _calls(value) if isinstance(value, ast.expr) else []
    return any(not _plain(look, code, c) and not _FIXED.search(written(c.func)) for c in calls)


def _parameter(code: Syntax, part: ast.expr) -> bool:
    """Whether an attribute of self that may be a parameter takes part: one that is made as one, or not in sight."""
    for node in below(part):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            made = [v for _, v in code.bindings(node)]
            called = isinstance(code.parent(node), ast.Call)
            if any("Parameter" in written(v) for v in made) or not (made or called or _PLAIN.search(node.attr)):
                return True
    return False
