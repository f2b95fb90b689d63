"""Where keys are drawn from: in a function, in what it calls, and what a name stands for that is called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Body, Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written

LOOPS = {"jax.lax.scan": (0, 0), "jax.lax.fori_loop": (2, 1), "jax.lax.while_loop": (1, 0)}
"""Where the body stands among the arguments, and the carry among the body's."""
_STARTS = {"scan": 1, "fori_loop": 3, "while_loop": 2}
_WRAPS = frozenset({"partial", "checkpoint", "remat", "jit", "filter_jit", "grad", "value_and_grad", "filter_grad",
                    "filter_value_and_grad", "vmap", "filter_vmap"})  # fmt: skip
"""What takes a function and gives one with the same arguments."""
_NO_DRAW = frozenset({"PRNGKey", "key", "fold_in", "key_data", "wrap_key_data", "clone", "key_impl", "seed"})
KEYS = re.compile(r"key|rng|seed|random|^k(_\w+|\d*)$", re.IGNORECASE)
DEEP = 4


def draws(code: Syntax, body: ast.AST) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The draws of a function itself, with the key's expression."""
    for call in (n for n in below(body) if isinstance(n, ast.Call)):
        full = code.qualified(call.func)
        if full.startswith("jax.random.") and last_name(call.func) not in _NO_DRAW:
            key = argument(call, 0, "key")
        elif last_name(call.func) in ("apply", "apply_fn") and isinstance(rngs := argument(call, 99, "rngs"), ast.Dict):
            key = rngs.values[0] if rngs.values else None
        else:
            continue
        if isinstance(key, (ast.Name, ast.Attribute, ast.Subscript)):
            yield call, key


def handed_on(look: Lookup, code: Syntax, body: ast.AST) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls of the project's functions that draw with a key as they are given it."""
    for call in (n for n in below(body) if isinstance(n, ast.Call)):
        given = [*call.args, *(k.value for k in call.keywords)]
        keys = [a for a in given if isinstance(a, (ast.Name, ast.Attribute)) and KEYS.search(last_name(a))]
        inner = body_of(look, code, call.func) or _constructor(look, call) if keys else None
        if inner is None or isinstance(inner[1], ast.Lambda):
            continue
        spec = [n for n in parameters(inner[1]) if n not in ("self", "cls")][inner[2]:]
        for name in spec:
            key = argument(call, spec.index(name), name)
            if key in keys and key is not None and drawn_from(look, inner[0], inner[1], name, DEEP) is not None:
                yield call, key


def drawn_from(look: Lookup, code: Syntax, body: Body, name: str, left: int) -> ast.Call | None:
    """The draw for which a parameter is the key, as it was passed: in the function, its loops and what it calls."""
    known, key = look.answers, (drawn_from, body, name)
    if left <= 0 or isinstance(body, ast.Lambda):
        return None
    if key not in known:
        known[key] = None  # while it is looked at: a function that calls itself
        known[key] = _drawn_inside(look, code, body, name, left)
    return known[key]  # type: ignore[no-any-return]


def _drawn_inside(look: Lookup, code: Syntax, body: Body, name: str, left: int) -> ast.Call | None:
    stored = stores(code, body, name)
    if any("fold_in" in written(v) for v in stored):
        return None
    for call in (n for n in below(body) if isinstance(n, ast.Call)):
        given = [*call.args, *(k.value for k in call.keywords)]
        full = code.qualified(call.func)
        if full.startswith("jax.random."):
            key = argument(call, 0, "key")
            if last_name(call.func) not in _NO_DRAW and _is_key(code, key, name):
                return call
            continue
        if full in LOOPS:
            start = argument(call, _STARTS[last_name(call.func)], "init", "init_val")
            carries = start.elts if isinstance(start, ast.Tuple) else [start]
            inner = body_of(look, code, argument(call, LOOPS[full][0], "f", "body_fun"))
            if inner is not None and any(isinstance(h, ast.Name) and h.id == name for h in carries):
                draw = next((d for d, _ in draws(inner[0], inner[1])), None)
                if draw is not None:
                    return draw
            continue
        passed = [a for a in given if isinstance(a, ast.Name) and a.id == name]
        if passed and full.startswith("equinox.nn.") and argument(call, 99, "key") is passed[0]:
            return call
        inner = body_of(look, code, call.func) if passed else None
        if inner is not None and not isinstance(inner[1], ast.Lambda):
            spec = [n for n in parameters(inner[1]) if n not in ("self", "cls")]
            for other in spec:
                if argument(call, spec.index(other), other) is passed[0]:
                    draw = drawn_from(look, inner[0], inner[1], other, left - 1)
                    if draw is not None:
                        return draw
    return None


def _is_key(code: Syntax, key: ast.expr | None, name: str) -> bool:
    """Whether a key is the parameter itself, or folded with what each call has alike: a number, a layer's place."""
    if isinstance(key, ast.Call) and code.qualified(key.func) == "jax.random.fold_in" and len(key.args) == 2:
        key, data = key.args
        around = [a for a in code.above(data) if isinstance(a, ast.For)]
        places = {n.id for loop in around for n in below(loop.target) if isinstance(n, ast.Name)}
        if not isinstance(data, ast.Constant) and not (isinstance(data, ast.Name) and data.id in places):
            return False
    return isinstance(key, ast.Name) and key.id == name


def body_of(look: Lookup, code: Syntax, func: ast.expr | None, left: int = DEEP) -> tuple[Syntax, Body, int] | None:
    """The function that a loop runs, and how many of its arguments `partial` has given."""
    if func is None or left <= 0:
        return None
    made = code.origin(func)
    if isinstance(made, ast.Name) and any(isinstance(a, FunctionNode) and made.id in parameters(a)
                                          for a in code.above(made)):  # fmt: skip
        return None  # whatever the caller hands in
    if isinstance(made, ast.Call) and last_name(made.func) not in _WRAPS:
        maker = look.made_by(code, made)
        return None if maker is None else (*maker, 0)
    if isinstance(made, ast.Call) and made.args:
        inner = body_of(look, code, made.args[0], left - 1)
        if inner is None:
            return None
        given = len(made.args) - 1 if last_name(made.func) == "partial" else 0
        return inner[0], inner[1], inner[2] + given
    found = look.function(code, made)
    return None if found is None else (found[0], found[1], 0)


def _constructor(look: Lookup, call: ast.Call) -> tuple[Syntax, Body, int] | None:
    """What a class of the project runs when an object is made."""
    own = look.classes.get(last_name(call.func), ())
    inits = [(c, n, 0) for c, kind in own for n in kind.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    return inits[0] if len(own) == len(inits) == 1 else None


def stores(code: Syntax, body: Body, text: str) -> list[ast.expr]:
    """What is assigned to a name, an attribute or an entry inside a function; loops' targets as they are."""
    found: list[ast.expr] = []
    for node in below(body):
        targets: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            targets = [(t, node.value) for t in node.targets]
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
            targets = [(node.target, node.value)]
        elif isinstance(node, (ast.For, ast.comprehension)):
            targets = [(node.target, node.iter)]
        for target, value in targets:
            parts = [n for n in below(target) if not isinstance(n, (ast.Tuple, ast.List, ast.Starred))]
            if any(written(p) == text for p in parts if isinstance(p, (ast.Name, ast.Attribute, ast.Subscript))):
                found.append(value)
    return found
