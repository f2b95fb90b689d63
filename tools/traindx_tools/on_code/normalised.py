"""Values that are normalised over axis 0: by softmax, by their length, in a helper or at the end of a module."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, syntax, written

SOFT = frozenset({"softmax", "log_softmax"})
_MENTIONED = ("oftmax", "normalise", "normalize", "norm(")
_LAYERS = frozenset({"Softmax", "LogSoftmax"})
_WRAPS = frozenset({"to", "cuda", "compile", "DataParallel"})


@dataclass(frozen=True)
class Normalised:
    """A value normalised over axis 0. `kind`: "soft" (sums to 1) or "length" (has norm 1)."""

    value: ast.expr
    made: ast.expr
    """The expression that normalises, which may stand in a function or class that `value` calls."""
    code: Syntax
    """Where `made` stands."""
    kind: str


def normalised(project: Project) -> Iterator[tuple[Syntax, list[Normalised]]]:
    """Every source with the values in it that are normalised over axis 0."""
    own = {id(f): _here(syntax(f)) for f in project.files if any(w in f.text for w in _MENTIONED)}
    helpers = _helpers(project, [n for found in own.values() for n in found])
    names = {name.rpartition(".")[2] for name in helpers}
    for file in project.files:
        found = own.get(id(file), [])
        if found or "Softmax(" in file.text or any(n in file.text for n in names):
            code = syntax(file)
            yield code, [*found, *_by_helpers(code, helpers)]


def axis_is_zero(code: Syntax, call: ast.Call) -> bool:
    """Whether a call of softmax, log_softmax or normalize runs over axis 0."""
    library = code.qualified(call.func)
    if library:
        given = argument(call, 2 if last_name(call.func) == "normalize" else 1, "dim", "axis")
        return library.startswith(("torch.", "jax.", "flax.")) and code.number(given) == 0
    own = isinstance(call.func, ast.Attribute) and last_name(call.func) in SOFT
    return own and code.number(argument(call, 0, "dim", "axis")) == 0


def _here(code: Syntax) -> list[Normalised]:
    return list(_written_out(code))


def _written_out(code: Syntax) -> Iterator[Normalised]:
    for call in code.calls(*SOFT, "normalize"):
        if axis_is_zero(code, call):
            yield Normalised(call, call, code, "soft" if last_name(call.func) in SOFT else "length")
    text = code.file.text
    for call in code.of(ast.Call) if any(name in text for name in _LAYERS) else ():
        layer = code.assigned(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else call.func
        if isinstance(layer, ast.Call) and _is_layer(code, layer) and len(call.args) == 1:
            yield Normalised(call, call, code, "soft")
    for node in code.of(ast.BinOp) if "norm" in text else ():
        if isinstance(node.op, ast.Div) and _is_norm(code, code.origin(node.right), node.left):
            yield Normalised(node, node, code, "length")


def _is_layer(code: Syntax, call: ast.Call) -> bool:
    return last_name(call.func) in _LAYERS and code.qualified(call.func).startswith("torch.nn.") and \
        code.number(argument(call, 0, "dim")) == 0  # fmt: skip


def _is_norm(code: Syntax, node: ast.expr, of: ast.expr) -> bool:
    """`z.norm(dim=0)`, `torch.norm(z, dim=0)`, `jnp.linalg.norm(z, axis=0, keepdims=True)` of the same z."""
    if isinstance(node, ast.Call) and last_name(node.func) in ("clamp", "clamp_min", "clip") and \
            isinstance(node.func, ast.Attribute) and not code.qualified(node.func):  # fmt: skip
        node = node.func.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        node = node.left
    if not isinstance(node, ast.Call) or last_name(node.func) not in ("norm", "vector_norm"):
        return False
    plain = bool(code.qualified(node.func))
    inner = (node.args[0] if node.args else None) if plain else getattr(node.func, "value", None)
    return written(inner) == written(of) and code.number(argument(node, 2 if plain else 1, "dim", "axis")) == 0


def _helpers(project: Project, found: list[Normalised]) -> dict[str, Normalised]:
    """What functions and modules give back, by name: their one return is the value. Names of two are left out."""
    if not found:
        return {}
    defined = Counter(f.name for file in project.files for f in syntax(file).of(ast.FunctionDef))
    known: dict[str, list[Normalised]] = {}
    for one in found:
        code = one.code
        function = code.function(one.value)
        if not isinstance(function, FunctionNode):
            continue
        returned = [r.value for r in code.of(ast.Return) if code.function(r) is function]
        if len(returned) == 1 and returned[0] is not None and code.origin(returned[0]) is one.value:
            owner = code.owner(function)
            name = owner.name if owner is not None and function.name in ("forward", "__call__") else function.name
            if defined[name] <= 1:
                known.setdefault(name, []).append(one)
    return {name: made[0] for name, made in known.items() if len(made) == 1}


def _wrapped(code: Syntax, node: ast.expr) -> ast.expr | None:
    """The model in `torch.compile(model)`, `model.to(device)`."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _WRAPS:
        return None
    if code.qualified(node.func) and node.args:
        return node.args[0]
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _by_helpers(code: Syntax, helpers: dict[str, Normalised]) -> Iterator[Normalised]:
    """Calls of such a function, of such a class's object, and of a Sequential that ends in a softmax over axis 0."""
    for call in code.of(ast.Call):
        if not isinstance(call.func, (ast.Name, ast.Attribute)) or not call.args:
            continue
        if code.qualified(call.func).startswith(("torch.", "jax.")):
            continue
        one = helpers.get(last_name(call.func)) if last_name(call.func)[:1].islower() else None
        bound = code.assigned(call.func)
        made = code.unwrapped(bound, partial(_wrapped, code)) if bound is not None else None
        last = None
        if isinstance(made, ast.Call):
            one = helpers.get(last_name(made.func), one)
            last = made.args[-1] if last_name(made.func) == "Sequential" and made.args else None
        if one is not None and one.value is not call:
            yield Normalised(call, one.made, one.code, one.kind)
        elif isinstance(last, ast.Call) and _is_layer(code, last):
            yield Normalised(call, last, code, "soft")
