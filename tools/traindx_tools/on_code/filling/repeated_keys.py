"""Keys that are the same in each round of a scan, each call of a function that trains, each step and each mapped row.

The loops of `jax.lax` hand a carry from round to round: a key in it that is drawn from and carried on as it came,
or one that the body takes from outside, gives the same numbers in every round. The same holds for a Python loop that
calls a function with one key and takes the trained state back, and for a function that is mapped over its rows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.filling.spots import spot_in
from traindx_tools.on_code.lookup import Body, Lookup, returned
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written
from traindx_tools.on_code.tracing import GRADIENTS
from traindx_tools.program.keys import SharedKey

_LOOPS = {"jax.lax.scan": (0, 0), "jax.lax.fori_loop": (2, 1), "jax.lax.while_loop": (1, 0)}
"""Where the body stands among the arguments, and the carry among the body's."""
_STARTS = {"scan": 1, "fori_loop": 3, "while_loop": 2}
_WRAPS = frozenset({"partial", "checkpoint", "remat", "jit", "filter_jit", "grad", "value_and_grad", "filter_grad",
                    "filter_value_and_grad"})  # fmt: skip
"""What takes a function and gives one with the same arguments."""
_NO_DRAW = frozenset({"PRNGKey", "key", "fold_in", "key_data", "wrap_key_data", "clone", "key_impl", "seed"})
_TRAINS = re.compile(r"apply_updates|apply_gradients|optim\w*\.update|\btx\.update|\bopt\.update")
_CALM = re.compile(r"eval|valid|(^|_)test|sampl|generat|fixed|init|plot|render", re.IGNORECASE)
_KEYS = re.compile(r"key|rng|seed|random|^k(_\w+|\d*)$", re.IGNORECASE)
_MAPS = frozenset({"jax.vmap", "jax.pmap", "jax.lax.map", "equinox.filter_vmap", "equinox.filter_pmap"})
_COPIES = re.compile(r"copies|copy|same|shared|replicat|broadcast|sweep|repeat|bench|determin|reproduc|^test_")
_UPDATES = frozenset({"apply_gradients", "apply_updates"})
_PUTS = frozenset({"replace", "_replace", "apply_gradients", "evolve", "update", "set", "_update"})
_DEEP = 4


def repeated_keys(look: Lookup) -> Iterator[SharedKey]:
    """Every key that a loop, a call, a step or a map repeats."""
    for code in look.codes:
        if "jax" not in code.file.text:
            continue
        for call in code.of(ast.Call):
            name = code.qualified(call.func)
            if name in _LOOPS:
                yield from _in_carry(look, code, call)
            elif name in _MAPS:
                yield from _mapped(look, code, call)
        for body in code.of(ast.FunctionDef):
            if any(code.qualified(d.func if isinstance(d, ast.Call) else d) in _MAPS for d in body.decorator_list):
                yield from _of_rows(look, code, body)
            yield from _in_state(look, code, body)
        yield from _in_calls(look, code)
        yield from (k for rows in code.of(ast.ListComp) for k in _of_one_list(look, code, rows))
        yield from (k for rows in code.of(ast.GeneratorExp) for k in _of_one_list(look, code, rows))


def _same(kind: str, code: Syntax, draw: ast.AST, why: str, trains: bool = True) -> SharedKey:
    return SharedKey(kind, code.file.segment(draw), spot_in(code, draw), why, trains)


def _mapped(look: Lookup, code: Syntax, call: ast.Call) -> Iterator[SharedKey]:
    found = _body(look, code, argument(call, 0, "fun", "f"))
    if found is not None:
        yield from _of_rows(look, found[0], found[1])


def _of_rows(look: Lookup, code: Syntax, body: Body) -> Iterator[SharedKey]:
    """The first draw of a mapped function that uses none of its arguments, with a key from outside."""
    given = [n for n, default in parameters(body).items() if default is None and n not in ("self", "cls")]
    used = {n.id for n in below(body) if isinstance(n, ast.Name)}
    if not given or used & set(given) or _COPIES.search(getattr(body, "name", "")):
        return
    for draw, key in (*_draws(code, body), *_handed_on(look, code, body)):
        if isinstance(key, ast.Name) and _from_outside(code, body, key, given):
            yield _same("map", code, draw, f"the mapped function ignores {given[0]} and draws every row with {key.id}")
            return


def _of_one_list(look: Lookup, code: Syntax, rows: ast.ListComp | ast.GeneratorExp) -> Iterator[SharedKey]:
    """A list of which every row is drawn with one key: `[rollout(params, key) for _ in range(n)]`."""
    bound = {n.id for g in rows.generators for n in below(g.target) if isinstance(n, ast.Name)}
    around = code.function(rows)
    if bound & names_in(rows.elt) or _COPIES.search(getattr(around, "name", "")):
        return
    for draw, key in (*_draws(code, rows.elt), *_handed_on(look, code, rows.elt)):
        if isinstance(key, ast.Name):
            yield _same("list", code, draw, f"every row of the list is drawn with {key.id}", trains=False)
            return


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
            yield _same("state", code, draw, f"no step changes {written(own_key)}: {body.name} neither folds the step "
                        "in nor puts a new key back")
            return


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


def _in_carry(look: Lookup, code: Syntax, call: ast.Call) -> Iterator[SharedKey]:
    at, place = _LOOPS[code.qualified(call.func)]
    found = _body(look, code, argument(call, at, "f", "body_fun"))
    if found is None:
        return
    home, body, bound = found
    names = [n for n in parameters(body) if n not in ("self", "cls")][bound:]
    if len(names) <= place:
        return
    carry, kind = names[place], last_name(call.func)
    outcomes = list(returned(body))
    if kind == "scan":
        outcomes = [o.elts[0] for o in outcomes if isinstance(o, ast.Tuple) and len(o.elts) == 2]
    trains = _trains(home, body)
    for draw, key in (*_draws(home, body), *_handed_on(look, home, body)):
        text = written(key)
        if not _bound_in(home, key, body, carry):
            if isinstance(key, ast.Name) and _from_outside(home, body, key, names):
                yield _same("scan", home, draw, f"{text} comes from outside the body of {kind}", trains)
        elif outcomes and all(_carried(home, o, key, carry) for o in outcomes):
            what = f"{text} is carried on by the {kind} at {code.at(call)} as it came, neither split nor folded"
            yield _same("scan", home, draw, what, trains)


def _body(look: Lookup, code: Syntax, func: ast.expr | None, left: int = _DEEP) -> tuple[Syntax, Body, int] | None:
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
        inner = _body(look, code, made.args[0], left - 1)
        if inner is None:
            return None
        given = len(made.args) - 1 if last_name(made.func) == "partial" else 0
        return inner[0], inner[1], inner[2] + given
    found = look.function(code, made)
    return None if found is None else (found[0], found[1], 0)


def _handed_on(look: Lookup, code: Syntax, body: ast.AST) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls of the project's functions that draw with a key as they are given it."""
    for call in (n for n in below(body) if isinstance(n, ast.Call)):
        given = [*call.args, *(k.value for k in call.keywords)]
        keys = [a for a in given if isinstance(a, (ast.Name, ast.Attribute)) and _KEYS.search(last_name(a))]
        inner = _body(look, code, call.func) or _constructor(look, call) if keys else None
        if inner is None or isinstance(inner[1], ast.Lambda):
            continue
        spec = [n for n in parameters(inner[1]) if n not in ("self", "cls")][inner[2]:]
        for name in spec:
            key = argument(call, spec.index(name), name)
            if key in keys and key is not None and _drawn_from(look, inner[0], inner[1], name, _DEEP) is not None:
                yield call, key


def _constructor(look: Lookup, call: ast.Call) -> tuple[Syntax, Body, int] | None:
    """What a class of the project runs when an object is made."""
    own = look.classes.get(last_name(call.func), ())
    inits = [(c, n, 0) for c, kind in own for n in kind.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    return inits[0] if len(own) == len(inits) == 1 else None


def _draws(code: Syntax, body: ast.AST) -> Iterator[tuple[ast.Call, ast.expr]]:
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


def _stores(code: Syntax, body: Body, text: str) -> list[ast.expr]:
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


def _bound_in(code: Syntax, key: ast.expr, body: Body, carry: str) -> bool:
    """Whether a key is the carry, a part of it, or a name that only the carry's unpacking binds."""
    head: ast.AST = key
    while isinstance(head, (ast.Attribute, ast.Subscript)):
        head = head.value
    if not isinstance(head, ast.Name):
        return False
    if isinstance(key, ast.Name):
        stored = _stores(code, body, key.id)
        if key.id == carry:
            return not stored
        return len(stored) == 1 and _of_carry(stored[0], carry)
    return head.id == carry and not _stores(code, body, written(key)) and not _stores(code, body, carry)


def _of_carry(value: ast.expr, carry: str) -> bool:
    while isinstance(value, (ast.Attribute, ast.Subscript)):
        value = value.value
    return isinstance(value, ast.Name) and value.id == carry


def _carried(code: Syntax, outcome: ast.expr, key: ast.expr, carry: str, left: int = 6) -> bool:
    """Whether the key goes on unchanged in what a round returns."""
    made = code.origin(outcome)
    text = written(key)
    if written(made) == text:
        return True
    if isinstance(made, (ast.Tuple, ast.List)):
        return any(written(e) == text for e in made.elts) or (left > 0 and not isinstance(key, ast.Name) and any(
            _carried(code, e, key, carry, left - 1) for e in made.elts))  # fmt: skip
    if isinstance(made, ast.Dict):
        own = [v for k, v in zip(made.keys, made.values, strict=True)
               if isinstance(k, ast.Constant) and isinstance(key, ast.Subscript) and written(k) == written(key.slice)]
        spread = any(k is None and written(v) == carry for k, v in zip(made.keys, made.values, strict=True))
        return written(own[0]) == text if own else spread and not isinstance(key, ast.Name)
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and isinstance(key, ast.Attribute):
        field = next((k.value for k in made.keywords if k.arg == key.attr), None)
        same = written(made.func.value) == carry and made.func.attr in ("replace", "_replace", "apply_gradients")
        return same and (field is None or written(field) == text) and not any(k.arg is None for k in made.keywords)
    return False


def _from_outside(code: Syntax, body: Body, key: ast.Name, names: list[str]) -> bool:
    """Whether a body takes a key of a function around it, made there once, or one that `partial` has given."""
    if key.id in names or _stores(code, body, key.id):
        return False
    for inner in code.above(key):
        if inner is body:
            break
        if isinstance(inner, (FunctionNode, ast.Lambda)) and key.id in parameters(inner):
            return False  # a function within, called with keys of its own
    return key.id in parameters(body) or bool(code.bindings(key)) or any(
        isinstance(a, FunctionNode) and key.id in parameters(a) for a in code.above(body))  # fmt: skip


def _trains(code: Syntax, body: Body) -> bool:
    calls = [n for n in below(body) if isinstance(n, ast.Call)]
    return any(code.qualified(c.func) in GRADIENTS for c in calls) or bool(_TRAINS.search(written(body)))


def _in_calls(look: Lookup, code: Syntax) -> Iterator[SharedKey]:
    """A loop that calls a function with one key, again and again, and takes back what it gives it."""
    for call in code.of(ast.Call):
        loops = code.loops(call)
        up = code.parent(call)
        if not loops or not isinstance(up, ast.Assign) or _CALM.search(last_name(call.func)):
            continue
        targets = {written(n) for t in up.targets for n in (t.elts if isinstance(t, ast.Tuple) else [t])}
        given = [*call.args, *(k.value for k in call.keywords)]
        if not any(written(a) in targets for a in given):
            continue
        found = _body(look, code, call.func)
        if found is None or isinstance(found[1], ast.Lambda):
            continue
        spec = [n for n in parameters(found[1]) if n not in ("self", "cls")][found[2]:]
        for name in spec:
            key = argument(call, spec.index(name), name)
            if not isinstance(key, (ast.Name, ast.Attribute)) or written(key) in targets or _changes(code, key, loops):
                continue
            if not _KEYS.search(name) and not _KEYS.search(last_name(key)):
                continue
            draw = _drawn_from(look, found[0], found[1], name, _DEEP)
            if draw is not None:
                what = f"{written(key)} is handed to {written(call.func)} in every iteration and never replaced"
                yield _same("call", code, call, what)


def _changes(code: Syntax, key: ast.expr, loops: list[ast.AST]) -> bool:
    """Whether the loop binds the key, or what holds it, anew."""
    names = {written(key), *names_in(key)} - {"self"}
    stored = {written(n) for loop in loops for n in below(loop)
              if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store)}  # fmt: skip
    return bool(names & stored) or (not code.bindings(key) and not isinstance(key, ast.Name))


def _drawn_from(look: Lookup, code: Syntax, body: Body, name: str, left: int) -> ast.Call | None:
    """The draw for which a parameter is the key, as it was passed: in the function, its loops and what it calls."""
    known: dict[tuple[int, str], ast.Call | None] = look.__dict__.setdefault("_drawn_from", {})
    if left <= 0 or isinstance(body, ast.Lambda):
        return None
    if (id(body), name) not in known:
        known[id(body), name] = None  # while it is looked at: a function that calls itself
        known[id(body), name] = _drawn_inside(look, code, body, name, left)
    return known[id(body), name]


def _is_key(code: Syntax, key: ast.expr | None, name: str) -> bool:
    """Whether a key is the parameter itself, or folded with what each call has alike: a number, a layer's place."""
    if isinstance(key, ast.Call) and code.qualified(key.func) == "jax.random.fold_in" and len(key.args) == 2:
        key, data = key.args
        around = [a for a in code.above(data) if isinstance(a, ast.For)]
        places = {n.id for loop in around for n in below(loop.target) if isinstance(n, ast.Name)}
        if not isinstance(data, ast.Constant) and not (isinstance(data, ast.Name) and data.id in places):
            return False
    return isinstance(key, ast.Name) and key.id == name


def _drawn_inside(look: Lookup, code: Syntax, body: Body, name: str, left: int) -> ast.Call | None:
    stored = _stores(code, body, name)
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
        if full in _LOOPS:
            start = argument(call, _STARTS[last_name(call.func)], "init", "init_val")
            carries = start.elts if isinstance(start, ast.Tuple) else [start]
            inner = _body(look, code, argument(call, _LOOPS[full][0], "f", "body_fun"))
            if inner is not None and any(isinstance(h, ast.Name) and h.id == name for h in carries):
                draw = next((d for d, _ in _draws(inner[0], inner[1])), None)
                if draw is not None:
                    return draw
            continue
        passed = [a for a in given if isinstance(a, ast.Name) and a.id == name]
        if passed and full.startswith("equinox.nn.") and argument(call, 99, "key") is passed[0]:
            return call
        inner = _body(look, code, call.func) if passed else None
        if inner is not None and not isinstance(inner[1], ast.Lambda):
            spec = [n for n in parameters(inner[1]) if n not in ("self", "cls")]
            for other in spec:
                if argument(call, spec.index(other), other) is passed[0]:
                    draw = _drawn_from(look, inner[0], inner[1], other, left - 1)
                    if draw is not None:
                        return draw
    return None
