"""A square root whose argument can be 0, with the epsilon outside the root or without one.

The derivative of sqrt at 0 is infinite; multiplied by the zero derivative of the square inside it gives NaN. An
epsilon added to the result protects a division by it and nothing else: it has to stand under the root. Padded frames,
empty rows, sets with one valid element and identical points make such zeros. `torch.norm` and `std` handle the point
themselves and are left alone, and so is the root of a loss that is reduced to one number, which is not exactly 0 in
training.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.masked_spread import spreads
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, Value, number
from traindx_tools.rules import Rule

RULE = Rule(
    id="C111",
    name="sqrt-at-zero",
    title="Square root at 0: the gradient is infinite",
    severity=Severity.HIGH,
    sees="sqrt(x), x ** 0.5 where x is a sum of squares or another value that is 0 for some rows, in a graph.",
    matters="The forward pass is finite and the gradient is NaN, for the first batch that holds such a row.",
    alike=("log of 0", "overflow"),
    confirm=(
        "torch.autograd.set_detect_anomaly(True) names SqrtBackward",
        "look for rows of zeros in the failing batch",
    ),
)
EPSILON = 1e-12
"""Its root, 1e-6, is far above float32's smallest numbers and far below usual norms."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every root."""
    written_out = [f for file in project.files if "sqrt" in file.text or "0.5" in file.text
                   for f in _masked(syntax(file))]  # fmt: skip
    yield from written_out
    lines = {(f.where.file, f.where.line) for f in written_out}
    yield from (f for f in _followed(project) if (f.where.file, f.where.line) not in lines)


def _masked(code: Syntax) -> Iterator[Finding]:
    """The deviation of the valid elements of a row is exactly 0 for a row with one of them, or none."""
    for node, inside in spreads(code):
        bare = isinstance(node, ast.Call) and bool(node.args)
        text = f"{ast.unparse(inside)} + {EPSILON:g}"
        made = patching.replace_text(code.file, inside, text if bare else f"({text})", "put an epsilon under the root")
        yield RULE.finding(
            f"{written(node)[:90]} at {code.at(node)} takes the square root of a masked variance without an epsilon: "
            "the variance is exactly 0 for a row with a single valid element, where the gradient is 0 * inf = NaN",
            code.place(node),
            code.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "sqrt", "epsilon_outside": "", "in_graph": True, "of": "masked-spread"},
            patch=(made,) if made is not None else (),
        )


def _followed(project: Project) -> Iterator[Finding]:
    for event in project.calls("sqrt"):
        value = event.receiver if isinstance(event.receiver, Tensor) else event.args[0] if event.args else None
        yield from _judged(event, value)
    for event in project.events:
        if event.kind == "operation" and event.name == "**" and number(event.args[1]) == 0.5:
            yield from _judged(event, event.args[0])
    for event in project.calls("pow", "power"):
        value = event.receiver if isinstance(event.receiver, Tensor) else event.args[0] if event.args else None
        if number(event.args[-1] if event.args else None) == 0.5:
            yield from _judged(event, value)


def _judged(event: Event, value: Value | None) -> Iterator[Finding]:
    if not isinstance(value, Tensor) or value.low is None or value.low != 0 or event.name.startswith("numpy."):
        return
    if value.high == 0 or event.grad is False or value.grad is False or "reduced" in value.tags:
        return
    if event.name.startswith("jax.") and not event.differentiated:
        return
    certain = value.grad is True or (event.differentiated and "one_row" in value.tags)
    severity = Severity.INFO if not certain else Severity.MEDIUM if "spread" in value.tags else None
    outside = _epsilon_outside(event)
    yield RULE.finding(
        f"{event.file.segment(event.node)} at {event.file.path}:{event.line} takes the root of a value that can "
        "be exactly 0"
        + (f"; {outside} is added outside the root, where it does not protect the derivative" if outside else "")
        + ": the gradient there is 0 * inf = NaN",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE if certain else Bearing.SIGN,
        severity=severity,
        measured={"kind": "sqrt", "epsilon_outside": outside or "", "in_graph": certain},
        patch=_patch(event),
    )


def _epsilon_outside(event: Event) -> str:
    """The small constant that is added to the root, as written."""
    tree: ast.AST = event.function.node if event.function else event.file.tree
    for node in below(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and event.node in (node.left, node.right):
            other = node.right if node.left is event.node else node.left
            if isinstance(other, (ast.Constant, ast.Name, ast.Attribute)):
                return ast.unparse(other)
    return ""


def _patch(event: Event) -> tuple[Patch, ...]:
    node = event.node
    inner: ast.expr | None = None
    if isinstance(node, ast.Call) and node.args and event.receiver is None:
        inner = node.args[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(event.receiver, Tensor):
        inner = node.func.value
    elif isinstance(node, ast.BinOp):
        inner = node.left
    if inner is None:
        return ()
    text = f"{ast.unparse(inner)} + {EPSILON:g}"
    bare = isinstance(node, ast.Call) and event.receiver is None
    made = patching.replace_text(event.file, inner, text if bare else f"({text})", "put a small epsilon under the root")
    return (made,) if made is not None else ()
