"""One random key for every example that vmap maps over: a model with dropout, a lambda that takes it from outside.

All examples of the batch get the same mask or the same noise. `fold_in` with something of the example, or keys that are
split and mapped, give each its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.module_modes import modal_classes
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, written
from traindx_tools.on_code.tracing import calls_of, differentiated, function_of

_MAPS = frozenset({"jax.vmap", "equinox.filter_vmap", "flax.nnx.vmap", "haiku.vmap"})
_KEY = re.compile(r"(\w+_)?(key|rng|prng)\d*", re.IGNORECASE)
_NO_DRAW = frozenset({"PRNGKey", "key", "fold_in", "key_data", "wrap_key_data", "clone", "split"})
_MEMBERS = re.compile(r"params?|theta|weights?|member|model|policy|agent|candidate|genome|particle|w|p|seed", re.I)
_CALM = re.compile(r"eval|valid|(^|_)test|sampl|generat|init|plot|render|predict|perturb|population", re.IGNORECASE)


@dataclass(frozen=True)
class Shared:
    """A mapped call, the key that all examples share, what draws from it, whether that is proved."""

    code: Syntax
    call: ast.Call
    key: str
    drawn: str
    known: bool


def shared_keys(look: Lookup, code: Syntax) -> Iterator[Shared]:
    """Every one of a file, in what is differentiated or draws itself."""
    maps = [c for c in code.of(ast.Call) if code.qualified(c.func) in _MAPS]
    if not maps:
        return
    trained = {id(n) for _, f in differentiated(code) for n in below(f)}
    names = {f.name for c in look.codes for _, f in differentiated(c)}
    for call in maps:
        function = code.function(call)
        learns = id(call) in trained or (isinstance(function, FunctionNode) and function.name in names)
        fun = argument(call, 0, "fun", "f")
        if isinstance(fun, ast.Call) and last_name(fun.func) == "partial":
            yield from _partial(code, call, fun) if learns else ()
        elif isinstance(fun, ast.Lambda):
            yield from _closed(code, call, fun, learns)
        elif isinstance(fun, (ast.Name, ast.Attribute)) and learns and function_of(code, fun) is None:
            yield from _model(look, code, call, fun)


def _model(look: Lookup, code: Syntax, call: ast.Call, fun: ast.expr) -> Iterator[Shared]:
    """`vmap(model, in_axes=(0, None))(xs, key)` of a module with dropout."""
    classes = modal_classes(look)
    made = code.origin(fun)
    quiet = isinstance(made, ast.Call) and last_name(made.func) in ("inference_mode", "tree_inference", "partial")
    axes = argument(call, 1, "in_axes")
    if not classes or quiet or not isinstance(axes, (ast.Tuple, ast.List)):
        return
    for used in calls_of(code, call):
        for place, axis in enumerate(axes.elts):
            key = argument(used, place)
            fixed = isinstance(axis, ast.Constant) and axis.value is None
            if fixed and isinstance(key, (ast.Name, ast.Attribute)) and _KEY.fullmatch(last_name(key)):
                yield Shared(code, call, written(key), f"the dropout of {' or '.join(sorted(classes)[:2])}", True)


def _partial(code: Syntax, call: ast.Call, fun: ast.Call) -> Iterator[Shared]:
    """`vmap(partial(model, key=key))(xs)`."""
    for keyword in fun.keywords:
        key = keyword.value
        if keyword.arg in ("key", "rng") and isinstance(key, ast.Name) and _KEY.fullmatch(key.id):
            yield Shared(code, call, key.id, written(fun)[:60], False)


def _closed(code: Syntax, call: ast.Call, fun: ast.Lambda, learns: bool) -> Iterator[Shared]:
    """`vmap(lambda x: model(x, key=key))(xs)`, `vmap(lambda x: x + normal(key, x.shape))(xs)`."""
    arguments = {a.arg for a in (*fun.args.posonlyargs, *fun.args.args)}
    function = code.function(call)
    calm = function is not None and _CALM.search(function.name) is not None
    if calm or all(_MEMBERS.fullmatch(a) for a in arguments) or any(_KEY.fullmatch(a) for a in arguments):
        return
    for draw in (n for n in below(fun.body) if isinstance(n, ast.Call)):
        name, key = code.qualified(draw.func), None
        if name.startswith("jax.random.") and last_name(draw.func) not in _NO_DRAW:
            key = argument(draw, 0, "key")
        elif learns and not name.startswith("jax."):
            key = argument(draw, 99, "key") or _of_table(argument(draw, 99, "rngs"))
        free = isinstance(key, ast.Name) and key.id not in arguments and _KEY.fullmatch(key.id)
        if free and isinstance(key, ast.Name) and arguments & names_in(fun.body):
            yield Shared(code, call, key.id, written(draw)[:60], False)
            return


def _of_table(rngs: ast.expr | None) -> ast.expr | None:
    """The key of `rngs={"dropout": key}`."""
    if not isinstance(rngs, ast.Dict):
        return None
    pairs = zip(rngs.keys, rngs.values, strict=True)
    return next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "dropout"), None)
