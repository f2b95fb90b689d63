"""The constants of a standardisation, or a mask, are parameters of the model, and are trained and decayed.

A jax array in a field of an equinox module is a leaf like any weight: `eqx.filter(model, eqx.is_inexact_array)` hands
the mean and the standard deviation of the data to the optimizer. Training moves them, and weight decay pulls them to 0,
so that outputs in physical units get a growing bias. The same with `nnx.Param` or `nn.Parameter` around statistics.

Told where the values come from data or from written numbers and are used as `(x - mean) / std` or `z * std + mean`, and
for masks made by tril or triu. Learned scales begin with ones and zeros, and are left alone; so are static fields,
numpy arrays, buffers, requires_grad=False, stop_gradient, filter specifications and optimizers by label.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Patch
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Lookup, Where, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written

(RULE,) = pages("jax", ("C561",))
_CENTERS = re.compile(r"(^|_)(means?|avg|offset|min|lo|low(er)?)(_|$)|mean", re.IGNORECASE)
_SPREADS = re.compile(r"(^|_)(sd|scale|var|variance|range|max|span|dev)(_|$)|std", re.IGNORECASE)
_MASK = re.compile(r"mask", re.IGNORECASE)
_DATA = frozenset({"mean", "std", "var", "nanmean", "nanstd", "array", "asarray", "tensor", "as_tensor", "from_numpy",
                   "FloatTensor", "load", "loadtxt", "quantile", "percentile", "median", "min", "max"})  # fmt: skip
_BEGINS = re.compile(r"\b(zeros|ones|full|zeros_like|ones_like|random|normal|uniform|randn|rand|empty|init\w*|eye)\b")
_LEARNED = re.compile(r"rbf|gauss|mixture|kernel|radial|densit|flow|actnorm|prototyp|cluster", re.IGNORECASE)
"""Modules that learn centers and widths, which may begin at statistics of the data."""
_FROZEN = re.compile(r"requires_grad_\(False|requires_grad = False")
_LEFT_OUT = re.compile(r"stop_gradient|multi_transform|set_to_zero|filter_spec|non_?trainable|optax\.masked|paramax|"
                       r"tree_at\([^\n]*(False|replace_fn)|is_trainable|frozen|freeze", re.IGNORECASE)  # fmt: skip
_HANDED = re.compile(r"filter\(\s*\w+(\.\w+)*\s*,\s*(eqx\.|equinox\.)?is_(inexact_)?array\b|"
                     r"partition\(\s*\w+(\.\w+)*\s*,\s*(eqx\.|equinox\.)?is_(inexact_)?array\b")  # fmt: skip


@dataclass(frozen=True)
class _Kind:
    """A framework: its modules, and what makes a value of theirs a parameter."""

    bases: tuple[str, ...]
    wrapper: str
    constant: str


_EQUINOX = _Kind(("equinox.Module",), "", "a jax array in a field of an equinox module")
_NNX = _Kind(("flax.nnx.Module",), "flax.nnx.Param", "an nnx.Param")
_TORCH = _Kind(("torch.nn.Module",), "torch.nn.Parameter", "an nn.Parameter that requires a gradient")


def check(project: Project) -> Iterator[Finding]:
    """Look at the fields of every module."""
    files = project.files
    equinox = any("equinox" in f.text for f in files) and any(f.mentions(_HANDED) for f in files)
    nnx = any("nnx.Optimizer" in f.text or "nnx.ModelAndOptimizer" in f.text for f in files)
    torch = any("nn.Parameter(" in f.text for f in files) and any("optim" in f.text for f in files)
    kinds = [k for k, asked in ((_EQUINOX, equinox), (_NNX, nnx), (_TORCH, torch))
             if asked]  # fmt: skip
    if not kinds:
        return
    look = lookup(project)
    if any(k is not _TORCH for k in kinds) and any(f.mentions(_LEFT_OUT) for f in files if "jax" in f.text):
        kinds = [k for k in kinds if k is _TORCH]
    for code in look.codes:
        for owner in code.of(ast.ClassDef):
            for kind in kinds:
                if any(code.qualified(b) in kind.bases for b in owner.bases):
                    found = list(_judged(look, code, owner, kind))
                    yield from found if found and _in_a_model(look, code, owner, kind) else ()


def _in_a_model(look: Lookup, code: Syntax, owner: ast.ClassDef, kind: _Kind) -> bool:
    """Whether a class has layers of its own, or another module has it as a part."""
    nested = [(c, k) for c in look.codes for k in c.of(ast.ClassDef)
              if k is not owner and any(c.qualified(b) in kind.bases for b in k.bases)]  # fmt: skip
    parts = any(isinstance(n, ast.Name) and n.id == owner.name for _, k in nested for n in below(k))
    layers = re.compile(r"^(equinox\.nn|flax\.nnx|torch\.nn)\.[A-Z]\w+$")
    own = [c for c in code.inside(owner, ast.Call) if layers.match(code.qualified(c.func))]
    return parts or any(code.qualified(c.func) not in (kind.wrapper, "equinox.nn.State") for c in own)


def _judged(look: Lookup, code: Syntax, owner: ast.ClassDef, kind: _Kind) -> Iterator[Finding]:
    pairs = list(_pairs(owner))
    if not pairs and kind is not _EQUINOX:
        return
    text = "\n".join(code.file.lines[owner.lineno - 1 : owner.end_lineno])
    if _LEARNED.search(owner.name) or (kind is _TORCH and _FROZEN.search(text)):
        return
    made = {n: v for n in _read(owner) if (v := _value(look, code, owner, n, kind)) is not None}
    for center, spread in pairs:
        if center in made and spread in made and _CENTERS.search(center) and _SPREADS.search(spread):
            both = [made[center], made[spread]]
            if all(_is_data(look, *v) for v in both):
                yield _finding(code, owner, kind, [center, spread], "standardisation", _patch(code, owner, kind, both))
                break
    if kind is _EQUINOX:
        for name, (_, value) in made.items():
            if _MASK.search(name) and re.search(r"\b(tril|triu)\(", written(value)) and "bool" not in written(value):
                yield _finding(code, owner, kind, [name], "mask", ())


def _read(owner: ast.ClassDef) -> set[str]:
    return {n.attr for n in below(owner) if isinstance(n, ast.Attribute) and written(n.value) == "self"}


def _pairs(owner: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """(center, spread) of `(x - self.mean) / self.std` and of `z * self.std + self.mean`."""
    for node in (n for n in below(owner) if isinstance(n, ast.BinOp)):
        center, spread = "", ""
        if isinstance(node.op, ast.Div) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Sub):
            center, spread = _field(node.left.right), _field(node.right)
        elif isinstance(node.op, ast.Add):
            for product, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult) and _field(other):
                    center, spread = _field(other), _field(product.right) or _field(product.left)
        if center and spread:
            yield center, spread


def _field(node: ast.expr) -> str:
    """The attribute of self that an operand is: through an index, `.value`, a root or a small number that is added."""
    while True:
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in ("value", "data")):
            node = node.value
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _field(node.left):
            node = node.left
        elif isinstance(node, ast.Call) and last_name(node.func) in ("sqrt", "view", "reshape", "to", "maximum"):
            inner = node.args[0] if node.args and last_name(node.func) in ("sqrt", "maximum") else node.func
            node = inner.value if isinstance(inner, ast.Attribute) and inner is node.func else inner
        else:
            break
    return node.attr if isinstance(node, ast.Attribute) and written(node.value) == "self" else ""


def _value(look: Lookup, code: Syntax, owner: ast.ClassDef, name: str, kind: _Kind) -> Where | None:
    """What a trainable field is given; None where it is none, or where that is not known."""
    stores = [s for s in code.inside(owner, ast.Assign) if written(s.targets[0]) == f"self.{name}"]
    if kind.wrapper:
        value = stores[0].value if len(stores) == 1 else None
        return (code, value) if isinstance(value, ast.Call) and _trainable(code, value, kind) else None
    declared = [s for s in owner.body if isinstance(s, ast.AnnAssign) and written(s.target) == name]
    if not declared or not re.search(r"Array|Float\[|ndarray", written(declared[0].annotation)):
        return None
    if declared[0].value is not None or re.search(r"\bnp\.|numpy", written(declared[0].annotation).replace("jnp.", "")):
        return None
    if len(stores) == 1 and not isinstance(stores[0].value, ast.Name):
        return code, stores[0].value
    return _given(look, code, owner, name, stores)


def _trainable(code: Syntax, call: ast.Call, kind: _Kind) -> bool:
    told = argument(call, 1, "requires_grad")
    return code.qualified(call.func) == kind.wrapper and not (isinstance(told, ast.Constant) and told.value is False)


def _given(look: Lookup, code: Syntax, owner: ast.ClassDef, name: str, stores: list[ast.Assign]) -> Where | None:
    """What the constructor's calls give for a field, where they give something."""
    begun = next((f for f in owner.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
    if begun is not None:
        spec = [p for p in parameters(begun) if p != "self"]
        source = last_name(stores[0].value) if len(stores) == 1 else ""
    else:
        spec = [last_name(s.target) for s in owner.body if isinstance(s, ast.AnnAssign)]
        source = name
    if source not in spec:
        return None
    for where, call in look.calls.get(owner.name, ()):
        given = argument(call, spec.index(source), source)
        if given is not None:
            return where, given
    return None


def _is_data(look: Lookup, code: Syntax, value: ast.expr) -> bool:
    """Whether a value is a statistic of data or written numbers, and no beginning of something that is learned."""
    where, made = look.origin(code, value)
    wraps = isinstance(made, ast.Call) and last_name(made.func) in ("Param", "Parameter")
    inner = made.args[0] if wraps and isinstance(made, ast.Call) and made.args else made
    where, inner = look.origin(where, inner)
    text = written(inner)
    plain = re.fullmatch(r"(jnp\.|jax\.numpy\.)?a(s)?array\(\[?\(?(0|1)(\.0?)?\)?\]?(,.*)?\)", text)
    if _BEGINS.search(text) or plain is not None or re.match(r"(np|numpy)\.", text):
        return False
    return any(isinstance(n, ast.Call) and last_name(n.func) in _DATA for n in below(inner))


def _patch(code: Syntax, owner: ast.ClassDef, kind: _Kind, values: list[Where]) -> tuple[Patch, ...]:
    """nn.Parameter without a gradient, nnx.Variable in place of nnx.Param."""
    change = Change(code.file, "keep them constant")
    if not kind.wrapper:
        return ()
    for _, value in values:
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or len(value.args) != 1:
            return ()
        if kind is _NNX:
            change = change.replace(value.func, f"{written(value.func.value)}.Variable")
        else:
            last = value.args[0]
            change = change.insert(last.end_lineno or 0, last.end_col_offset or 0, ", requires_grad=False")
    return change.patches()


def _names(statement: ast.AST) -> str:
    """What an assignment is to."""
    if isinstance(statement, ast.AnnAssign):
        return last_name(statement.target)
    return last_name(statement.targets[0]) if isinstance(statement, ast.Assign) else ""


def _finding(code: Syntax, owner: ast.ClassDef, kind: _Kind, names: list[str], what: str,
             patch: tuple[Patch, ...]) -> Finding:  # fmt: skip
    listed = " and ".join(f"`{n}`" for n in names)
    node = next((s for s in below(owner) if _names(s) == names[0]), owner)
    meant = "the constants of the standardisation" if what == "standardisation" else "a fixed mask"
    return RULE.finding(
        f"{listed} of {owner.name} ({code.at(node)}), {meant}, {'are' if len(names) > 1 else 'is'} {kind.constant} and "
        "so trainable: the optimizer gets them with the weights, training moves them, and weight decay shrinks them",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": what, "names": ", ".join(names)},
        patch=patch,
    )
