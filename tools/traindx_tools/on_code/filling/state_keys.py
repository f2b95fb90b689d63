"""Keys that lie in a training state or an object, and that nothing ever puts back anew."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.compiled import GRADIENTS, is_pytree
from traindx_tools.on_code.filling.key_draws import CALM, NO_USE
from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written
from traindx_tools.program.traced import SharedKey

_KEYS = re.compile(r"key|rng|seed|random|^k(_\w+|\d*)$", re.IGNORECASE)
_UPDATES = frozenset({"apply_gradients", "apply_updates"})
_PUTS = frozenset({"replace", "_replace", "apply_gradients", "evolve", "update", "set", "_update"})


def state_keys(look: Lookup) -> Iterator[SharedKey]:
    """Every key that each step, or each call of an object, finds as the one before did."""
    for code in look.codes:
        for body in code.of(ast.FunctionDef) if "jax" in code.file.text else ():
            yield from _in_state(look, code, body)
            yield from _of_object(look, code, body)


def _draws(code: Syntax, body: ast.AST) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The draws of a function itself, with the key's expression."""
    for call in (n for n in below(body) if isinstance(n, ast.Call)):
        full = code.qualified(call.func)
        if full.startswith("jax.random.") and last_name(call.func) not in NO_USE:
            key = argument(call, 0, "key")
        elif last_name(call.func) in ("apply", "apply_fn") and isinstance(rngs := argument(call, 99, "rngs"), ast.Dict):
            key = rngs.values[0] if rngs.values else None
        else:
            continue
        if isinstance(key, (ast.Name, ast.Attribute, ast.Subscript)):
            yield call, key


def _in_state(look: Lookup, code: Syntax, body: ast.FunctionDef) -> Iterator[SharedKey]:
    """A key that lies in the training state, and that no line of the project puts back anew."""
    calls = code.inside(body, ast.Call)
    if not any(last_name(c.func) in _UPDATES for c in calls) or not any(
            code.qualified(c.func) in GRADIENTS for c in calls):  # fmt: skip
        return
    outer = code.function(body)
    inside = outer is not None and any(last_name(c.func) in _UPDATES for c in code.inside(outer, ast.Call))
    for draw, key in _draws(code, body) if not inside else ():
        own_key = code.assigned(key) if isinstance(key, ast.Name) else key
        if not isinstance(own_key, ast.Attribute) or not isinstance(own_key.value, ast.Name) or not (
                _KEYS.search(own_key.attr)):
            own_key = _split_from(code, key)
        if own_key is not None and own_key.value.id in parameters(body) and not _put_back(look, code, body, own_key):  # type: ignore[attr-defined]
            yield SharedKey("state", code.file.segment(draw), code.spot(draw),
                f"no step changes {written(own_key)}: {body.name} neither folds the step in nor puts a new key back")
            return


def _of_object(look: Lookup, code: Syntax, body: ast.FunctionDef) -> Iterator[SharedKey]:
    """A method that splits the key of its object and keeps none of the new ones: each call hands out the same."""
    owner = code.parent(body)
    if not isinstance(owner, ast.ClassDef) or is_pytree(owner) or CALM.search(f"{owner.name} {body.name}"):
        return
    for call in code.calls_in(body, "split"):
        key, up = call.args[0] if call.args else None, code.parent(call)
        if code.qualified(call.func) != "jax.random.split" or not isinstance(key, ast.Attribute) or (
                written(key.value) != "self" or not isinstance(up, ast.Assign)):  # fmt: skip
            continue
        stores = [c.function(n) for c in look.codes for n in c.of(ast.Attribute)
                  if n.attr == key.attr and isinstance(n.ctx, ast.Store)]  # fmt: skip
        kept = any(s is not None and s.name != "__init__" for s in stores) or code.calls_in(body, "fold_in")
        asked = look.callers(body, code)
        again = len(asked) > 1 or any(c.loops(a) for c, a in asked)
        if again and not kept and isinstance(up.targets[0], ast.Tuple):
            why = f"{body.name} keeps no new {written(key)}, so all its calls split the same key"
            yield SharedKey("state", code.file.segment(call), code.spot(call), why, trains=False)


def _split_from(code: Syntax, key: ast.expr) -> ast.Attribute | None:
    """The attribute of a state that a key was split from: `_, drawn = split(self.rng)`."""
    made = [v.value if isinstance(v, ast.Subscript) else v for _, v in code.bindings(key)]
    own_key = made[0].args[0] if len(made) == 1 and isinstance(made[0], ast.Call) and made[0].args and (
        code.qualified(made[0].func) == "jax.random.split") else None  # fmt: skip
    plain = isinstance(own_key, ast.Attribute) and isinstance(own_key.value, ast.Name) and _KEYS.search(own_key.attr)
    return own_key if isinstance(own_key, ast.Attribute) and plain else None


def _put_back(look: Lookup, code: Syntax, body: ast.FunctionDef, own_key: ast.Attribute) -> bool:
    """Whether any line of the project gives the state another key, or may: a new state is made by its class, too."""
    if any(last_name(c.func)[:1].isupper() for c in code.inside(body, ast.Call)):
        return True
    for other in look.codes:
        for keyword in other.of(ast.keyword):
            call = other.parent(keyword)
            name = last_name(call.func) if isinstance(call, ast.Call) else ""
            if name in _PUTS and (keyword.arg == own_key.attr or (keyword.arg is None and "replace" in name)):
                return True
        for node in other.of(ast.Attribute):
            around = other.function(node) if node.attr == own_key.attr and isinstance(node.ctx, ast.Store) else None
            if around is not None and around.name not in ("__init__", "setup", "__post_init__", "create", "reset"):
                return True
    return any(other.calls("tree_at") for other in look.codes)
