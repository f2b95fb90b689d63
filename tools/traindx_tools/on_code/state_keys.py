"""A key that lies in the training state and is the same in every step: drawn from, and never put back anew.

`state.key` goes through `apply_gradients` as it came. A step that draws from it has to fold the step's number in, or to
split it and put the other half into the state.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written
from traindx_tools.on_code.tracing import GRADIENTS

_KEY = re.compile(r"(\w+_)?(key|rng|prng)s?", re.IGNORECASE)
_STATE = re.compile(r"self|(\w+_)?(state|ts|carry|learner|agent)", re.IGNORECASE)
_UPDATES = frozenset({"apply_gradients", "apply_updates"})
_PUTS = frozenset({"replace", "_replace", "apply_gradients", "evolve", "tree_at", "update", "set", "_update"})
_QUIET = frozenset({"fold_in", "key_data", "wrap_key_data", "clone", "key_impl", "device_put", "replicate", "print"})


@dataclass(frozen=True)
class Kept:
    """A draw from a key of the state that no step changes."""

    code: Syntax
    node: ast.expr
    draw: ast.Call
    name: str
    step: str


def kept_keys(look: Lookup) -> Iterator[Kept]:
    """The first such draw of every function that trains."""
    for code in look.codes:
        text = code.file.text
        if "jax" not in text or not any(u in text for u in _UPDATES):
            continue
        for function in code.of(ast.FunctionDef):
            outer = code.function(function)
            names = [n for n in parameters(function) if _STATE.fullmatch(n)]
            if not names or not _trains(code, function) or (outer is not None and _trains(code, outer)):
                continue
            found = next((k for n in names for k in _kept(look, code, function, n)), None)
            if found is not None:
                yield found


def _trains(code: Syntax, function: ast.AST) -> bool:
    calls = [n for n in below(function) if isinstance(n, ast.Call)]
    return any(last_name(c.func) in _UPDATES for c in calls) and any(code.qualified(c.func) in GRADIENTS for c in calls)


def _kept(look: Lookup, code: Syntax, function: ast.FunctionDef, state: str) -> Iterator[Kept]:
    for node in below(function):
        held = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == state
        if not held or not isinstance(node, ast.Attribute) or not _KEY.fullmatch(node.attr):
            continue
        draw = _drawn(code, function, node)
        if draw is not None and not _put_back(look, code, function, state, node.attr):
            yield Kept(code, node, draw, written(node), function.name)


def _drawn(code: Syntax, function: ast.FunctionDef, node: ast.Attribute) -> ast.Call | None:
    """The draw that gets the key as it is, at once or by the one name that it is bound to."""
    uses: list[ast.expr] = [node]
    up = code.parent(node)
    if isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
        name = up.targets[0].id
        if any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and n is not up.targets[0]
               for n in below(function)):  # fmt: skip
            return None
        uses = [n for n in below(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    for use in uses:
        call = _given_to(code, use)
        if call is not None:
            return call
    return None


def _given_to(code: Syntax, use: ast.expr) -> ast.Call | None:
    """The sampler, the split or the model (`rngs={"dropout": key}`, `key=key`) that an expression is given to."""
    up = code.parent(use)
    if isinstance(up, ast.Dict):
        holder = code.parent(up)
        call = code.parent(holder) if isinstance(holder, ast.keyword) and holder.arg == "rngs" else None
        return call if isinstance(call, ast.Call) else None
    if isinstance(up, ast.keyword):
        call = code.parent(up)
        named = up.arg in ("key", "rng", "rngs", "dropout_key", "dropout_rng")
        return call if named and isinstance(call, ast.Call) and last_name(call.func) not in _QUIET | _PUTS else None
    if isinstance(up, ast.Call) and code.qualified(up.func).startswith("jax.random.") and argument(up, 0, "key") is use:
        return up if last_name(up.func) not in _QUIET else None
    return None


def _put_back(look: Lookup, code: Syntax, function: ast.FunctionDef, state: str, key: str) -> bool:
    """Whether any line of the project gives the state another key, or may."""
    if any(isinstance(n, ast.Call) and last_name(n.func)[:1].isupper() for n in below(function)):
        return True  # a new state may be made by its class
    for other in look.codes:
        if key not in other.file.text:
            continue
        for keyword in other.of(ast.keyword):
            call = other.parent(keyword)
            if keyword.arg == key and isinstance(call, ast.Call) and last_name(call.func) in _PUTS:
                return True
            if keyword.arg is None and isinstance(call, ast.Call) and last_name(call.func) in ("replace", "_replace"):
                return True
        if other.calls("tree_at"):
            return True
        for node in other.of(ast.Attribute):
            if node.attr == key and isinstance(node.ctx, ast.Store):
                around = other.function(node)
                if around is None or around.name not in ("__init__", "setup", "__post_init__", "create", "reset"):
                    return True
    return state == "self" and not any(
        n.attr == key and isinstance(n.ctx, ast.Store) for n in code.of(ast.Attribute))  # fmt: skip
