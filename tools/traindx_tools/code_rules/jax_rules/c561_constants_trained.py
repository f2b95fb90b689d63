"""The constants of a standardisation, or a mask, are parameters of the model, and are trained and decayed.

A jax array in a field of an equinox module is a leaf like any weight: `eqx.filter(model, eqx.is_inexact_array)` hands
the mean and the standard deviation of the data to the optimizer. Training moves them, and weight decay pulls them to 0,
so that outputs in physical units get a growing bias.

Told where the values come from data or from written numbers and are used as `(x - mean) / std` or `z * std + mean`.
Learned scales begin with ones and zeros, and are left alone; so are static fields, numpy arrays, stop_gradient, filter
specifications and optimizers by label.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.breach import pages
from traindx_tools.on_code.lookup import Lookup, Where, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written

(RULE,) = pages("jax", ("C561",))
_CENTERS = re.compile(r"(^|_)(means?|avg|offset|min|lo|low(er)?)(_|$)|mean", re.IGNORECASE)
_SPREADS = re.compile(r"(^|_)(sd|scale|var|variance|range|max|span|dev)(_|$)|std", re.IGNORECASE)
_DATA = frozenset({"mean", "std", "var", "nanmean", "nanstd", "array", "asarray", "tensor", "as_tensor", "from_numpy",
                   "FloatTensor", "load", "loadtxt", "quantile", "percentile", "median", "min", "max"})  # fmt: skip
_BEGINS = re.compile(r"\b(zeros|ones|full|zeros_like|ones_like|random|normal|uniform|randn|rand|empty|init\w*|eye)\b")
_LEARNED = re.compile(r"rbf|gauss|mixture|kernel|radial|densit|flow|actnorm|prototyp|cluster", re.IGNORECASE)
"""Modules that learn centers and widths, which may begin at statistics of the data."""
_LEFT_OUT = re.compile(r"stop_gradient|multi_transform|set_to_zero|filter_spec|non_?trainable|optax\.masked|paramax|"
                       r"tree_at\([^\n]*(False|replace_fn)|is_trainable|frozen|freeze", re.IGNORECASE)  # fmt: skip
_HANDED = re.compile(r"filter\(\s*\w+(\.\w+)*\s*,\s*(eqx\.|equinox\.)?is_(inexact_)?array\b|"
                     r"partition\(\s*\w+(\.\w+)*\s*,\s*(eqx\.|equinox\.)?is_(inexact_)?array\b")  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at the fields of every module of equinox."""
    files = project.files
    handed = any("equinox" in f.text for f in files) and any(f.mentions(_HANDED) for f in files)
    if not handed or any(f.mentions(_LEFT_OUT) for f in files if "jax" in f.text):
        return
    look = lookup(project)
    for code in look.codes:
        for owner in code.of(ast.ClassDef):
            if any(code.qualified(b) == "equinox.Module" for b in owner.bases):
                found = list(_findings(look, code, owner))
                yield from found if found and _in_a_model(look, code, owner) else ()


def _in_a_model(look: Lookup, code: Syntax, owner: ast.ClassDef) -> bool:
    """Whether a class has layers of its own, or another module has it as a part."""
    nested = [k for c in look.codes for k in c.of(ast.ClassDef)
              if k is not owner and any(c.qualified(b) == "equinox.Module" for b in k.bases)]  # fmt: skip
    parts = any(isinstance(n, ast.Name) and n.id == owner.name for k in nested for n in below(k))
    return parts or any(re.match(r"equinox\.nn\.(?!State)[A-Z]", code.qualified(c.func))
                        for c in code.inside(owner, ast.Call))  # fmt: skip


def _findings(look: Lookup, code: Syntax, owner: ast.ClassDef) -> Iterator[Finding]:
    if _LEARNED.search(owner.name):
        return
    made = {n: v for n in _read(owner) if (v := _value(look, code, owner, n)) is not None}
    for center, spread in _pairs(owner):
        if center in made and spread in made and _CENTERS.search(center) and _SPREADS.search(spread) and all(
                _is_data(look, *v) for v in (made[center], made[spread])):  # fmt: skip
            yield _finding(code, owner, [center, spread])
            break


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


def _value(look: Lookup, code: Syntax, owner: ast.ClassDef, name: str) -> Where | None:
    """What a field that holds an array is given; None where it is none, or where that is not known."""
    stores = [s for s in code.inside(owner, ast.Assign) if written(s.targets[0]) == f"self.{name}"]
    declared = [s for s in owner.body if isinstance(s, ast.AnnAssign) and written(s.target) == name]
    if not declared or not re.search(r"Array|Float\[|ndarray", written(declared[0].annotation)):
        return None
    if declared[0].value is not None or re.search(r"\bnp\.|numpy", written(declared[0].annotation).replace("jnp.", "")):
        return None
    if len(stores) == 1 and not isinstance(stores[0].value, ast.Name):
        return code, stores[0].value
    return _given(look, code, owner, name, stores)


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


def _finding(code: Syntax, owner: ast.ClassDef, names: list[str]) -> Finding:
    listed = " and ".join(f"`{n}`" for n in names)
    node = next((s for s in owner.body if isinstance(s, ast.AnnAssign) and written(s.target) == names[0]), owner)
    return RULE.finding(
        f"{listed} of {owner.name} ({code.at(node)}), the constants of the standardisation, are a jax array in a field "
        "of an equinox module and so trainable: the optimizer gets them with the weights, training moves them, and "
        "weight decay shrinks them",
        code.place(node), code.file.path, bearing=Bearing.CAUSE,
        measured={"kind": "standardisation", "names": ", ".join(names)})
