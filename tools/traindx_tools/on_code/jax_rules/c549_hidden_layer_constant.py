"""A hidden layer of a JAX network starts with equal weights.

With one constant in every weight all units of a layer compute the same and get the same gradient: a layer of 128 units
stays one unit for ever. With zeros the layer gives zeros, a ReLU behind it passes no gradient, and the layers in front
get none at all. Zeros belong into the last layer of a residual branch or into an output, where nothing follows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C549",
    name="hidden-layer-constant",
    title="A hidden layer starts with equal weights",
    severity=Severity.HIGH,
    sees="kernel_init of zeros, ones or a constant in a layer whose output goes through an activation into another "
         "layer; weight matrices of all layers made by zeros, ones or full.",
    matters="All units of the layer stay equal, or no gradient reaches the layers in front.",
    alike=("a zero output layer, or a zero last layer of a residual branch", "moments and masks, which begin at zero",
           "scales of a normalisation, which begin at one"),
    confirm=("print(params[...]['kernel'].std()) after some steps: it is 0",),
)  # fmt: skip
_LAYERS = frozenset({"Dense", "Linear", "Conv", "DenseGeneral"})
_CONSTANT = re.compile(r"(^|\.)(zeros|ones|zeros_init|ones_init|constant)$|^(Zeros|Ones|Constant)$|\.(Constant)$")
_ACTIVATIONS = frozenset({"relu", "gelu", "silu", "swish", "elu", "leaky_relu", "tanh", "selu", "celu", "softplus",
                          "relu6", "hard_tanh", "mish"})  # fmt: skip
_WEIGHTS = re.compile(r"(w|weights?|kernel|matrix|W)\d*")
_STATE = re.compile(r"moment|veloc|mask|grad|opt|adam|buffer|zeros_like|cache|accum|trace|count|stat", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every initialiser of a layer, and at weights that are made by hand for every layer."""
    for file in project.files:
        if "jax" not in file.text and "flax" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls(*_LAYERS):
            if code.qualified(call.func).startswith(("flax.linen.", "flax.nnx.", "haiku.")):
                yield from _layer(code, call)
        yield from _by_hand(code)


def _layer(code: Syntax, call: ast.Call) -> Iterator[Finding]:
    given = next((k.value for k in call.keywords if k.arg in ("kernel_init", "w_init")), None)
    if given is None:
        return
    maker = given.func if isinstance(given, ast.Call) else given
    if not _CONSTANT.search(written(maker)) or not _hidden(code, call):
        return
    keyword = next(k for k in call.keywords if k.value is given)
    value = written(given)
    zero = "zeros" in value.lower() or (isinstance(given, ast.Call) and code.number(argument(given, 0, "value")) == 0)
    drawn = {"flax.linen": "nn.initializers.lecun_normal()", "flax.nnx": "nnx.initializers.lecun_normal()"}
    text = drawn.get(code.qualified(call.func).rpartition(".")[0], "")
    patch: tuple[Patch, ...] = ()
    if text and written(call.func).partition(".")[0] == text.partition(".")[0]:
        patch = Change(code.file, "weights that differ").replace(given, text).patches()
    why = "its units give 0, and no gradient passes through them" if zero else "all of its units stay equal"
    yield _finding(code, keyword.value, f"{keyword.arg}={value} in {written(call)[:50]}, a hidden layer: {why}", patch)


def _hidden(code: Syntax, call: ast.Call) -> bool:
    """Whether the layer's output goes through an activation, and what comes out of it into another layer."""
    applied = code.parent(call)
    if isinstance(applied, ast.Call) and applied.func is call:
        return _activated(code, applied)
    if isinstance(applied, ast.Assign) and written(applied.targets[0]).startswith("self."):
        name, owner = written(applied.targets[0]), code.owner(call)
        uses = [c for c in below(owner) if isinstance(c, ast.Call) and written(c.func) == name] if owner else []
        return bool(uses) and all(_activated(code, c) for c in uses)
    return False


def _activated(code: Syntax, applied: ast.Call) -> bool:
    up = code.parent(applied)
    while isinstance(up, ast.Call) and re.search("norm", last_name(up.func), re.IGNORECASE):
        up = code.parent(up)
    if isinstance(up, ast.Call) and last_name(up.func) in _ACTIVATIONS:
        return _fed(code, up)
    if not isinstance(up, ast.Assign) or not isinstance(up.targets[0], ast.Name):
        return False
    name, scope = up.targets[0].id, code.scope(applied)
    reads = [n for n in code.reads(scope, name) if n.lineno > up.lineno]
    if not reads:
        return False
    first = min(reads, key=lambda n: (n.lineno, n.col_offset))
    holder = code.parent(first)
    return isinstance(holder, ast.Call) and last_name(holder.func) in _ACTIVATIONS and _fed(code, holder)


def _fed(code: Syntax, value: ast.Call) -> bool:
    """Whether a value goes straight into another layer, dropout and normalisation aside, and nowhere else."""
    node: ast.AST = value
    for _ in range(8):
        up = code.parent(node)
        if isinstance(up, ast.Call) and up.func is not node:
            layer = up.func.func if isinstance(up.func, ast.Call) else up.func
            name = last_name(layer)
            if name in _LAYERS or (written(layer).startswith("self.") and not re.search(r"drop|norm", name, re.I)):
                return True
            if name not in ("Dropout", "LayerNorm", "BatchNorm", "asarray") and not re.search(r"drop|norm", name, re.I):
                return False
            node = up
        elif isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name):
            reads = [n for n in code.reads(code.scope(up), up.targets[0].id) if n.lineno > up.lineno]
            if not reads:
                return False
            node = min(reads, key=lambda n: (n.lineno, n.col_offset))
        else:
            return False
    return False


def _by_hand(code: Syntax) -> Iterator[Finding]:
    """`jnp.zeros((m, n))` as the weights of every layer, in a loop over the sizes of the layers."""
    for call in code.calls("zeros", "ones", "full"):
        shape = argument(call, 0, "shape")
        if not code.qualified(call.func).startswith("jax.numpy.") or not isinstance(shape, ast.Tuple):
            continue
        body = code.function(call)
        if len(shape.elts) != 2 or not all(isinstance(e, ast.Name) for e in shape.elts) or body is None:
            continue
        sizes = {e.id for e in shape.elts if isinstance(e, ast.Name)}
        loop = _over_sizes(code, call, sizes)
        if loop is None or _STATE.search(f"{body.name} {written(code.statement(call))}"):
            continue
        inside = list(below(loop))
        drawn = any(isinstance(n, ast.Call) and code.qualified(n.func).startswith("jax.random.")
                    and not code.qualified(n.func).endswith(("split", "fold_in")) for n in inside)  # fmt: skip
        if not drawn and _is_weight(code, call):
            why = f"{written(call)} makes the weights of every layer: all units of a layer stay equal"
            yield _finding(code, call, why, ())


def _over_sizes(code: Syntax, call: ast.Call, sizes: set[str]) -> ast.AST | None:
    """The loop whose variables are the two sizes."""
    for up in code.above(call):
        targets = [up.target] if isinstance(up, ast.For) else [
            g.target for g in up.generators] if isinstance(up, (ast.ListComp, ast.GeneratorExp)) else []  # fmt: skip
        overs = [up.iter] if isinstance(up, ast.For) else [
            g.iter for g in up.generators] if isinstance(up, (ast.ListComp, ast.GeneratorExp)) else []  # fmt: skip
        for target, over in zip(targets, overs, strict=True):
            if sizes <= names_in(target) and "zip(" in written(over) and "[" in written(over):
                return up
        if isinstance(up, ast.FunctionDef):
            return None
    return None


def _is_weight(code: Syntax, call: ast.Call) -> bool:
    """Whether the matrix is called a weight: a key, a name, or the first of a pair with a vector."""
    node: ast.AST = call
    for up in code.above(call):
        if isinstance(up, ast.Assign):
            return isinstance(up.targets[0], ast.Name) and _WEIGHTS.fullmatch(up.targets[0].id) is not None
        if isinstance(up, ast.Dict):
            key = next((k for k, v in zip(up.keys, up.values, strict=True) if v is node), None)
            return isinstance(key, ast.Constant) and _WEIGHTS.fullmatch(str(key.value)) is not None
        if isinstance(up, ast.Tuple):
            return len(up.elts) == 2 and up.elts[0] is node and isinstance(up.elts[1], ast.Call)
        if isinstance(up, ast.stmt):
            return False
        node = up
    return False


def _finding(code: Syntax, node: ast.AST, why: str, patch: tuple[Patch, ...]) -> Finding:
    return RULE.finding(f"{why} (at {code.at(node)})", code.place(node), code.file.path, bearing=Bearing.CAUSE,
                        measured={"kind": "constant weights"}, patch=patch)  # fmt: skip
