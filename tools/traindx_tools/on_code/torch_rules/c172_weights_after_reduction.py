"""Sample weights multiply a loss that is a mean already.

`criterion(out, y)` with the default reduction is one number. `(criterion(out, y) * w).mean()` multiplies that number by
the mean weight: every sample counts the same, whatever its weight. The loss has to be made with `reduction="none"`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C172",
    name="weights-after-reduction",
    title="Weights of samples multiply a loss that is reduced already",
    severity=Severity.HIGH,
    sees="(loss * weights).mean() where the loss was made with its default reduction.",
    matters="The weights cancel out: rare classes, valid positions or importance ratios count like all others.",
    alike=("a weight that is one number for the whole batch",),
    confirm=("print(loss.shape): it is empty before the weights are applied",),
)
_LOSSES = re.compile(r"(cross_entropy|nll_loss|mse_loss|l1_loss|smooth_l1_loss|huber_loss|binary_cross_entropy\w*)")
_CLASSES = re.compile(r"(CrossEntropy|NLL|MSE|L1|SmoothL1|Huber|BCE|BCEWithLogits)Loss")
_WEIGHTS = re.compile(r"weight|\bw\b|mask|importance|valid|ratio|\biw\b", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every mean or sum of a product with a loss."""
    for file in project.files:
        if "torch" not in file.text or "loss" not in file.text.lower():
            continue
        code = syntax(file)
        for call in code.calls("mean", "sum"):
            product = _product_of(code, call)
            if product is None:
                continue
            for loss, weight in ((product.left, product.right), (product.right, product.left)):
                made = _reduced(code, loss)
                if made is not None and _WEIGHTS.search(written(weight)) and not isinstance(weight, ast.Constant):
                    yield _finding(code, call, made, weight)
                    break


def _product_of(code: Syntax, call: ast.Call) -> ast.BinOp | None:
    own = isinstance(call.func, ast.Attribute) and code.qualified(call.func) not in ("torch.mean", "torch.sum")
    if own and call.args:
        return None
    inner = call.func.value if own and isinstance(call.func, ast.Attribute) else argument(call, 0, "input")
    return inner if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult) else None


def _reduced(code: Syntax, node: ast.expr) -> ast.Call | None:
    """The call that made the loss, where it is one of torch with its default reduction."""
    origin = code.origin(node)
    if not isinstance(origin, ast.Call) or _says_otherwise(origin):
        return None
    if _LOSSES.fullmatch(last_name(origin.func)) and code.qualified(origin.func).startswith("torch."):
        return origin
    maker = code.origin(origin.func) if isinstance(origin.func, (ast.Name, ast.Attribute)) else None
    if isinstance(maker, ast.Call) and _CLASSES.fullmatch(last_name(maker.func)):
        return None if _says_otherwise(maker) else maker
    return None


def _says_otherwise(call: ast.Call) -> bool:
    """Whether a reduction is given, or may be among options that are not written out."""
    starred = any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args)
    return starred or argument(call, 99, "reduction", "reduce") is not None


def _finding(code: Syntax, call: ast.Call, made: ast.Call, weight: ast.expr) -> Finding:
    return RULE.finding(
        f"{code.file.segment(call)} at {code.at(call)} multiplies a loss that is one number already (made at line "
        f"{made.lineno} with its default reduction) by {written(weight)}: the weights cancel out",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "reduced", "made_line": made.lineno},
        patch=_patch(code, made),
    )


def _patch(code: Syntax, made: ast.Call) -> tuple[Patch, ...]:
    text = written(made)
    changed = f'{text[:-1]}{", " if made.args or made.keywords else ""}reduction="none")'
    patch = patching.replace_text(code.file, made, changed, "one loss for each sample")
    return () if patch is None else (patch,)
