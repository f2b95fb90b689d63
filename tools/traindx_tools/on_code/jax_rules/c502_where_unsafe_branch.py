"""`where` hides a bad value in the forward pass and not in the gradient.

`where(x > 0, log(x), 0)` is finite, but reverse mode differentiates both branches: in the branch that is not selected
the zero cotangent meets an infinite derivative (log, sqrt, 1/x at 0, exp that overflowed) and 0 * inf is NaN, which
is added to the gradient of x. The argument has to be made safe inside the branch as well: `log(where(x > 0, x, 1))`.
It holds for jax.numpy and torch alike.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import jax_values
from traindx_tools.on_code.source import below
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor
from traindx_tools.rules import Rule

RULE = Rule(
    id="C502",
    name="where-unsafe-branch",
    title="where hides an unsafe branch from the forward pass only",
    severity=Severity.HIGH,
    sees="where(condition on x, f(x), other) with f = exp, log, sqrt, power, division and x not made safe inside f.",
    matters="The loss is finite and the gradient becomes NaN as soon as an unselected element overflows or hits 0.",
    alike=("log of 0 without where", "a learning rate that is too high"),
    confirm=("jax.config.update('jax_debug_nans', True)", "evaluate f at the elements that the condition excludes"),
)
_UNSAFE = frozenset(
    {
        "exp",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "rsqrt",
        "power",
        "pow",
        "arccos",
        "arcsin",
        "acos",
        "asin",
        "reciprocal",
        "expm1",
        "norm",
        "arctanh",
        "atanh",
    }
)
_SAFE = frozenset(
    {
        "where",
        "maximum",
        "minimum",
        "clip",
        "clamp",
        "abs",
        "softplus",
        "clamp_min",
        "clamp_max",
        "relu",
        "max",
        "min",
        "nan_to_num",
        "logaddexp",
        "square",
    }
)

_DRAWN = re.compile(r"\bbernoulli|\brandom\.|\brand\(|rand_like")


def check(project: Project) -> Iterator[Finding]:
    """Look at every where that lies in a graph."""
    for event in project.calls("where", "select"):
        if event.name in ("jax.numpy.where", "torch.where", "jax.lax.select") and isinstance(event.node, ast.Call):
            found = _judged(event, event.node)
            if found is not None:
                yield found


def _in_graph(event: Event) -> bool:
    if event.name.startswith("jax."):
        return event.differentiated
    return event.grad is not False and any(isinstance(a, Tensor) and a.grad for a in event.args)


def _own_gradient(event: Event) -> bool:
    """Whether the function says itself what its gradient is (custom_jvp, custom_vjp): nothing goes through here."""
    decorators = getattr(event.function.node, "decorator_list", ()) if event.function is not None else ()
    return any("custom_jvp" in ast.unparse(d) or "custom_vjp" in ast.unparse(d) or "custom_gradient" in ast.unparse(d)
               for d in decorators)  # fmt: skip


def _judged(event: Event, node: ast.Call) -> Finding | None:
    if len(node.args) != 3 or not _in_graph(event) or _own_gradient(event):
        return None
    condition = _resolved(event, node.args[0])
    if _DRAWN.search(ast.unparse(condition)):
        return None  # dropout: the condition excludes nothing that is infinite
    for second, branch in enumerate(node.args[1:]):
        unsafe = _unsafe_part(_resolved(event, branch), condition)
        if unsafe is not None:
            inner = event.file.segment(unsafe)
            return RULE.finding(
                f"{event.file.segment(node)} at {event.file.path}:{event.line} differentiates {inner} where the "
                "condition "
                f"{event.file.segment(node.args[0])} excludes it too: an infinite value there turns the gradient "
                "into 0 * inf = NaN",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "where", "unsafe": inner},
                patch=jax_values.safe_inside(event.file, node, unsafe, bool(second)),
            )
    return None


def _resolved(event: Event, node: ast.expr) -> ast.expr:
    """What a local name was last assigned before the event's line."""
    if not isinstance(node, ast.Name) or event.function is None:
        return node
    best: ast.expr | None = None
    for inner in below(event.function.node):
        if (
            isinstance(inner, ast.Assign)
            and inner.lineno < event.line
            and any(isinstance(t, ast.Name) and t.id == node.id for t in inner.targets)
        ):
            best = inner.value
    return best if best is not None else node


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in below(node) if isinstance(n, ast.Name)}


def _unsafe_part(branch: ast.expr, condition: ast.expr) -> ast.expr | None:
    watched = _names(condition) - {"jnp", "np", "torch", "jax"}
    stack: list[ast.expr] = [branch]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _SAFE:
                continue
            inside = list(node.args) or ([node.func.value] if isinstance(node.func, ast.Attribute) else [])
            if name in _UNSAFE and any(_names(a) & watched for a in inside) and not any(_guarded(a) for a in inside):
                return node
        divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        if divides and isinstance(node, ast.BinOp) and _names(node.right) & watched and not _guarded(node.right):
            return node
        stack.extend(c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
    return None


def _guarded(node: ast.AST) -> bool:
    for inner in below(node):
        if isinstance(inner, ast.Call):
            name = inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
            if name in _SAFE:
                return True
    return False
