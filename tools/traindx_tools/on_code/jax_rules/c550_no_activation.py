"""A network of dense layers has no activation.

Dense layers one behind the other, with nothing but sums between them, are one dense layer: `x @ A @ B` is `x @ (A B)`,
however many there are. Such a network fits what a linear model fits and no more.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C550",
    name="no-activation",
    title="A network of dense layers has no activation",
    severity=Severity.MEDIUM,
    sees="A module of flax, nnx, equinox or haiku that applies dense layers to each other's output, and names no "
         "function that is not linear.",
    matters="The network is a linear model, whatever its depth: the loss stops where that one's does.",
    alike=("a factorised layer of low rank", "a linear autoencoder", "heads side by side on one input"),
    confirm=("f(a) + f(b) == f(a + b) + f(0) for two inputs",),
)
_DENSE = frozenset({"Dense", "Linear", "DenseGeneral"})
_ON_PURPOSE = re.compile(r"lora|low_?rank|\brank|factor|bottleneck|linear_?(net|model|ae|auto|probe)|pca|deep_?linear|"
                         r"adapter|project|embed", re.IGNORECASE)  # fmt: skip
_LINEAR = frozenset({
    "Dense", "Linear", "DenseGeneral", "Dropout", "BatchNorm", "reshape", "ravel", "squeeze", "mean", "sum", "split",
    "transpose", "flatten", "astype", "asarray", "ones", "zeros", "zip", "len", "range", "enumerate", "reversed",
    "list", "tuple", "append", "next", "int", "isinstance", "super", "__init__", "print", "vmap", "PRNGKey", "Rngs",
    "key", "params", "dropout",
})  # fmt: skip
_FRAMEWORKS = ("flax.linen.", "flax.nnx.", "equinox.nn.", "haiku.")


def check(project: Project) -> Iterator[Finding]:
    """Look at every module of dense layers."""
    for file in project.files:
        if not any(w in file.text for w in ("flax", "equinox", "haiku")):
            continue
        code = syntax(file)
        for owner in code.of(ast.ClassDef):
            if not _ON_PURPOSE.search(owner.name):
                yield from _judged(code, owner)


def _judged(code: Syntax, owner: ast.ClassDef) -> Iterator[Finding]:
    methods = {f.name: f for f in owner.body if isinstance(f, ast.FunctionDef)}
    forward = methods.get("__call__")
    if forward is None or set(methods) - {"__call__", "__init__", "setup"}:
        return
    made = [c for c in below(owner) if isinstance(c, ast.Call) and last_name(c.func) in _DENSE
            and code.qualified(c.func).startswith(_FRAMEWORKS)]  # fmt: skip
    held = {written(a.targets[0]): a.value for m in methods.values() for a in code.inside(m, ast.Assign)
            if written(a.targets[0]).startswith("self.")}  # fmt: skip
    bends = (ast.Pow, ast.MatMult, ast.Div, ast.Mult)
    if len(made) < 2 or any(isinstance(n, ast.BinOp) and isinstance(n.op, bends) for n in below(forward)):
        return
    if any(k.arg == "use_bias" for c in made for k in c.keywords) or _ON_PURPOSE.search(written(owner)):
        return
    for call in (n for m in methods.values() for n in below(m) if isinstance(n, ast.Call)):
        target = call.func.func if isinstance(call.func, ast.Call) else call.func
        name = last_name(target)
        inner = held.get(written(target))
        known = name in _LINEAR or (isinstance(inner, ast.Call) and last_name(inner.func) in _LINEAR)
        looped = isinstance(target, ast.Name) and _over_layers(code, target, held)
        if not known and not looped and not _of_list(target, held):
            return  # something that is not known may be a nonlinear function
    chained = _chain(code, forward, held)
    if chained:
        yield RULE.finding(
            f"{owner.name} at {code.at(owner)} applies {len(made)} dense layers to each other's output and no "
            "activation between them: together they are one linear layer",
            code.place(chained), code.file.path, bearing=Bearing.SIGN,
            measured={"kind": "linear", "layers": len(made)},
        )  # fmt: skip


def _over_layers(code: Syntax, target: ast.Name, held: dict[str, ast.expr]) -> bool:
    """Whether a name runs over a list of dense layers that the module holds."""
    for loop in code.loops(target):
        if isinstance(loop, ast.For) and target.id in {n.id for n in below(loop.target) if isinstance(n, ast.Name)}:
            for part in below(loop.iter):
                if isinstance(part, ast.Attribute) and _dense_list(held.get(written(part))):
                    return True
    return False


def _dense_list(layers: ast.expr | None) -> bool:
    """Whether it is a list of dense layers alone, as it is written."""
    parts = layers.elts if isinstance(layers, ast.List) else [layers.elt] if isinstance(layers, ast.ListComp) else []
    return bool(parts) and all(isinstance(p, ast.Call) and last_name(p.func) in _DENSE for p in parts)


def _of_list(target: ast.expr, held: dict[str, ast.expr]) -> bool:
    """`self.layers[-1]` of a list of dense layers."""
    return isinstance(target, ast.Subscript) and _dense_list(held.get(written(target.value)))


def _chain(code: Syntax, forward: ast.FunctionDef, held: dict[str, ast.expr]) -> ast.AST | None:
    """A dense layer that is applied to the output of another one: by nesting, by one name, or in a loop."""
    applied: list[ast.Call] = []
    for call in code.inside(forward, ast.Call):
        target = call.func.func if isinstance(call.func, ast.Call) else call.func
        inner = held.get(written(target))
        if (isinstance(call.func, ast.Call) and last_name(target) in _DENSE) or (
                isinstance(inner, ast.Call) and last_name(inner.func) in _DENSE):  # fmt: skip
            applied.append(call)
        elif isinstance(target, ast.Name) and _over_layers(code, target, held):
            statement = code.statement(call)
            again = isinstance(statement, ast.Assign) and call.args and written(statement.targets[0]) == written(
                call.args[0])  # fmt: skip
            if again:
                return call
    for call in applied:
        given = call.args[0] if call.args else None
        for _ in range(4):
            given = code.origin(given) if given is not None else None
            if not isinstance(given, ast.Call) or any(given is a for a in applied):
                break
            given = given.args[0] if given.args else None
        if given is not None and given is not call and any(given is a for a in applied):
            return call
    return None
