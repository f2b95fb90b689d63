"""The forward process uses the step's alpha instead of the cumulative one.

x_t = sqrt(abar_t) x_0 + sqrt(1 - abar_t) noise, where abar is the cumulative product of 1 - beta. With alpha = 1 - beta
itself the noise of a single step is added at every t: the input is nearly clean even at the last step, and sampling,
which starts from pure noise, meets inputs that were never trained.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C190",
    name="schedule-not-cumulative",
    title="The noise schedule is not cumulated",
    severity=Severity.HIGH,
    sees="sqrt(a) * x + sqrt(1 - a) * noise where a is 1 - beta and no cumulative product.",
    matters="The loss looks fine and samples are noise.",
    alike=("a sampler with an error", "too few training steps"),
    confirm=("print(a[-1]): a cumulative schedule ends near 0, 1 - beta near 0.98",),
)
_THROUGH = frozenset({"view", "reshape", "unsqueeze", "gather", "to", "float", "extract", "cuda", "index_select"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every mixture with square roots."""
    for file in project.files:
        if "sqrt" not in file.text or "beta" not in file.text:
            continue
        code = syntax(file)
        for node in code.of(ast.BinOp):
            schedule = _mixture(code, node)
            if schedule is not None and _is_single_step(code, schedule):
                yield RULE.finding(
                    f"{code.file.segment(node)} at {code.at(node)} mixes with {written(schedule)}, which is 1 - beta "
                    "of one step and not the cumulative product of all steps so far",
                    code.place(node),
                    file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "schedule"},
                    patch=forms.cumulative(file, schedule),
                )


def _mixture(code: Syntax, node: ast.BinOp) -> ast.expr | None:
    """a of sqrt(a) * x + sqrt(1 - a) * noise."""
    if not isinstance(node.op, ast.Add):
        return None
    roots = [r for side in (node.left, node.right) if (r := _root(code, side)) is not None]
    if len(roots) != 2:
        return None
    for one, other in (roots, roots[::-1]):
        rest = isinstance(other, ast.BinOp) and isinstance(other.op, ast.Sub) and code.number(other.left) == 1
        if rest and isinstance(other, ast.BinOp) and _base(code, other.right) == _base(code, one):
            return one
    return None


def _root(code: Syntax, side: ast.expr) -> ast.expr | None:
    """What stands under the root of a factor of a product."""
    if not (isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult)):
        return None
    for factor in (side.left, side.right):
        made = _unwrapped(code, factor)
        if isinstance(made, ast.Call) and last_name(made.func) == "sqrt":
            inner = made.args[0] if made.args else made.func.value if isinstance(made.func, ast.Attribute) else None
            return _unwrapped(code, inner) if inner is not None else None
        if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Pow) and code.number(made.right) == 0.5:
            return _unwrapped(code, made.left)
    return None


def _unwrapped(code: Syntax, node: ast.expr) -> ast.expr:
    """Without indexing and reshapes; names followed."""
    for _ in range(10):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and last_name(node.func) in _THROUGH:
            if isinstance(node.func, ast.Attribute) and last_name(node.func) != "extract":
                node = node.func.value
            elif node.args:
                node = node.args[0]
            else:
                return node
        elif isinstance(node, (ast.Name, ast.Attribute)) and (before := code.assigned(node)) is not None:
            if isinstance(before, ast.BinOp) and isinstance(before.op, ast.Sub):
                return node if "beta" in written(before) else before
            node = before
        else:
            return node
    return node


def _base(code: Syntax, node: ast.expr) -> str:
    return written(_unwrapped(code, node))


def _is_single_step(code: Syntax, node: ast.expr) -> bool:
    """Whether it is 1 - beta."""
    made = code.assigned(node) if isinstance(node, (ast.Name, ast.Attribute)) else node
    if not (isinstance(made, ast.BinOp) and isinstance(made.op, ast.Sub)):
        return False
    return code.number(made.left) == 1 and "beta" in written(made.right).lower() and "cumprod" not in written(made)
