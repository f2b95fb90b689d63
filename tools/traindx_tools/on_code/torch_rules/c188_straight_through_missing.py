"""A quantized value is passed on without a straight-through estimator.

`q = codebook[argmin(distance)]` has no gradient to z: argmin has none. Handed to the decoder as it is, the encoder gets
no gradient from the reconstruction and is moved by the commitment term alone. `z + (q - z).detach()` has the value of q
and the gradient of z.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.quantizers import looked_up, terms
from traindx_tools.on_code.repairs import graph
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C188",
    name="straight-through-missing",
    title="A quantized value is passed on without a straight-through estimator",
    severity=Severity.HIGH,
    sees="A code that is looked up by argmin, returned or decoded as it is, in a function with a commitment term.",
    matters="The reconstruction does not train the encoder.",
    alike=("a decoder that ignores its input", "Gumbel-softmax, which needs no estimator"),
    confirm=("the encoder's gradient norm is 0 without the commitment term",),
)
_THROUGH = re.compile(r"gumbel|autograd\.Function|\.apply\(|rotat|straight|ste\b", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every function that looks codes up."""
    for file in project.files:
        if "argmin" not in file.text or not ("detach" in file.text or "stop_gradient" in file.text):
            continue
        code = syntax(file)
        for function in code.of(ast.FunctionDef):
            trained = any(code.function(t.node) is function for t in terms(code, function))
            if not trained or _THROUGH.search(written(function)):
                continue
            for name in looked_up(code, function):
                passed = _passed_on(code, function, name.id)
                if passed is not None and not _estimated(function, name.id):
                    yield RULE.finding(
                        f"{name.id}, looked up at {code.at(name)}, is passed on at line {passed.lineno} as it is: "
                        "argmin has no gradient, so nothing behind it trains the encoder",
                        code.place(passed),
                        file.path,
                        bearing=Bearing.CAUSE,
                        measured={"kind": "straight-through", "name": name.id},
                        patch=graph.straight_through(file, function, name.id, passed),
                    )
                    break


def _passed_on(code: Syntax, function: ast.FunctionDef, name: str) -> ast.stmt | None:
    """Where the value is returned or decoded, bound only once."""
    for node in below(function):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Return) and node.value is not None:
            parts = list(node.value.elts) if isinstance(node.value, ast.Tuple) else [node.value]
            parts = [_plain(p) for p in parts]
        elif isinstance(node, ast.Call) and last_name(node.func) in ("decoder", "decode", "dec"):
            parts = node.args
        if any(isinstance(p, ast.Name) and p.id == name and len(code.bindings(p)) == 1 for p in parts):
            return code.statement(node)
    return None


def _plain(node: ast.expr) -> ast.expr:
    """Without reshapes."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (
        "view", "permute", "reshape", "contiguous", "transpose", "view_as", "movedim"):  # fmt: skip
        node = node.func.value
    return node


def _estimated(function: ast.AST, name: str) -> bool:
    """Whether a difference with this value is cut somewhere: the straight-through form."""
    for node in below(function):
        if isinstance(node, ast.Call) and last_name(node.func) in ("detach", "stop_gradient", "sg"):
            inner = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
            difference = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub)
            if difference and inner is not None and name in names_in(inner):
                return True
    return False
