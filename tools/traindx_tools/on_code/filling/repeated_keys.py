"""Keys that are the same in each round of a scan, each call of a function that trains, each step and each mapped row.

The loops of `jax.lax` hand a carry from round to round: a key in it that is drawn from and carried on as it came,
or one that the body takes from outside, gives the same numbers in every round. The same holds for a Python loop that
calls a function with one key and takes the trained state back, and for a function that is mapped over its rows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.filling.key_draws import DEEP, KEYS, LOOPS, body_of, drawn_from, draws, handed_on, stores
from traindx_tools.on_code.jitted import is_pytree
from traindx_tools.on_code.lookup import Body, Lookup, returned
from traindx_tools.on_code.nodes import head_of
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written
from traindx_tools.on_code.tracing import GRADIENTS
from traindx_tools.program.traced import SharedKey

_TRAINS = re.compile(r"apply_updates|apply_gradients|optim\w*\.update|\btx\.update|\bopt\.update")
_CALM = re.compile(r"eval|valid|(^|_)test|sampl|generat|fixed|init|plot|render", re.IGNORECASE)
_MAPS = frozenset({"jax.vmap", "jax.pmap", "jax.lax.map", "equinox.filter_vmap", "equinox.filter_pmap"})
_COPIES = re.compile(r"copies|copy|same|shared|replicat|broadcast|sweep|repeat|bench|determin|reproduc|^test_")
_SIZED = frozenset({"normal", "uniform", "truncated_normal", "orthogonal"})
_UPDATES = frozenset({"apply_gradients", "apply_updates"})
_PUTS = frozenset({"replace", "_replace", "apply_gradients", "evolve", "update", "set", "_update"})



def repeated_keys(look: Lookup) -> Iterator[SharedKey]:
    """Every key that a loop, a call, a step or a map repeats."""
    for code in look.codes:
        if "jax" not in code.file.text:
            continue
        for call in code.of(ast.Call):
            name = code.qualified(call.func)
            if name in LOOPS:
                yield from _in_carry(look, code, call)
            elif name in _MAPS:
                yield from _mapped(look, code, call)
        for body in code.of(ast.FunctionDef):
            if any(code.qualified(d.func if isinstance(d, ast.Call) else d) in _MAPS for d in body.decorator_list):
                yield from _of_rows(look, code, body)
            yield from _in_state(look, code, body)
            yield from _of_object(look, code, body)
        yield from _in_calls(look, code)
        yield from (k for rows in code.of(ast.ListComp) for k in _of_one_list(look, code, rows))
        yield from (k for rows in code.of(ast.GeneratorExp) for k in _of_one_list(look, code, rows))


def _same(kind: str, code: Syntax, draw: ast.AST, why: str, trains: bool = True) -> SharedKey:
    return SharedKey(kind, code.file.segment(draw), code.spot(draw), why, trains)


def _mapped(look: Lookup, code: Syntax, call: ast.Call) -> Iterator[SharedKey]:
    made, axes, up = argument(call, 0, "fun", "f"), argument(call, 1, "in_axes"), code.parent(call)
    found = body_of(look, code, made)
    if found is not None:
        yield from _of_rows(look, found[0], found[1])
    alike = [i for i, a in enumerate(axes.elts) if isinstance(a, ast.Constant) and a.value is None] if isinstance(
        axes, (ast.Tuple, ast.List)) else []  # fmt: skip
    target = up.targets[0] if isinstance(up, ast.Assign) else None
    uses = [code.parent(r) for r in code.reads(code.scope(call), target.id)] if isinstance(target, ast.Name) else [up]
    bound = "" if target is None else written(target)
    up = next((u for u in uses if isinstance(u, ast.Call) and (u.func is call or written(u.func) == bound)), None)
    if not alike or up is None or not _differentiated(code, call):
        return
    called = [(c, n, 0) for c, n in look.functions.get("__call__", ()) if is_pytree(c.owner(n))]
    for home, body, given in (found,) if found is not None else called if isinstance(made, ast.Name) else ():
        spec = [n for n in parameters(body) if n not in ("self", "cls")][given:]
        for name in (spec[i] for i in alike if i < len(spec) == len(up.args)):
            if KEYS.search(name) and drawn_from(look, home, body, name, DEEP) is not None:
                yield _same("rows", code, up, f"{name} is one key for all rows that are mapped", trains=False)
                return


def _differentiated(code: Syntax, node: ast.AST) -> bool:
    """Whether it stands in a function of which a gradient is taken."""
    around = [a for a in code.above(node) if isinstance(a, ast.FunctionDef)]
    by = [d.func if isinstance(d, ast.Call) else d for a in around for d in a.decorator_list]
    given = {last_name(c.args[0]) for c in code.of(ast.Call) if code.qualified(c.func) in GRADIENTS and c.args}
    return any(a.name in given for a in around) or any(code.qualified(d) in GRADIENTS for d in by)


def _of_rows(look: Lookup, code: Syntax, body: Body) -> Iterator[SharedKey]:
    """The first draw of a mapped function that uses none of its arguments, with a key from outside."""
    given = [n for n, default in parameters(body).items() if default is None and n not in ("self", "cls")]
    used = {n.id for n in below(body) if isinstance(n, ast.Name)}
    if not given or used & set(given) or _COPIES.search(getattr(body, "name", "")):
        return
    for draw, key in (*draws(code, body), *handed_on(look, code, body)):
        if isinstance(key, ast.Name) and _from_outside(code, body, key, given):
            yield _same("map", code, draw, f"the mapped function ignores {given[0]} and draws every row with {key.id}")
            return


def _of_one_list(look: Lookup, code: Syntax, rows: ast.ListComp | ast.GeneratorExp) -> Iterator[SharedKey]:
    """A list of which every row is drawn with one key: `[rollout(params, key) for _ in range(n)]`."""
    bound = {n.id for g in rows.generators for n in below(g.target) if isinstance(n, ast.Name)}
    around = code.function(rows)
    name, varied = getattr(around, "name", ""), bool(bound & names_in(rows.elt))
    if _COPIES.search(name) or (varied and _CALM.search(name)):
        return
    for draw, key in (*draws(code, rows.elt), *_layers(code, rows.elt), *handed_on(look, code, rows.elt)):
        plain = isinstance(key, ast.Name) or written(key).startswith("self.")
        if plain and not bound & names_in(key) and (
                not varied or _by_size(look, code, draw, key, bound)):  # fmt: skip
            yield _same("list", code, draw, f"every row of the list is drawn with {written(key)}", trains=False)
            return


def _layers(code: Syntax, elt: ast.expr) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Layers that are made with a key."""
    for call in (n for n in below(elt) if isinstance(n, ast.Call)):
        key = argument(call, 99, "key") if code.qualified(call.func).startswith("equinox.nn.") else None
        if isinstance(key, (ast.Name, ast.Attribute)):
            yield call, key


def _by_size(look: Lookup, code: Syntax, draw: ast.Call, key: ast.expr, bound: set[str]) -> bool:
    """Whether the rows of a list differ in the size of what is drawn, and in nothing else that is given."""
    given = {w: a for w, a in (*enumerate(draw.args), *((k.arg, k.value) for k in draw.keywords)) if a is not key}
    varied = {w for w, a in given.items() if bound & names_in(a)}
    full = code.qualified(draw.func)
    if full.startswith("jax.random."):
        return last_name(draw.func) in _SIZED and varied <= {1, "shape", "minval", "maxval"} and 1 in varied
    found = None if full.startswith("equinox.nn.") else body_of(look, code, draw.func)
    if found is None or isinstance(found[1], ast.Lambda) or _CALM.search(found[1].name.removeprefix("init")):
        return full.startswith("equinox.nn.") and bool(varied)
    spec = [n for n in parameters(found[1]) if n not in ("self", "cls")][found[2]:]
    name = next((n for n in spec if argument(draw, spec.index(n), n) is key), "")
    inner = drawn_from(look, found[0], found[1], name, DEEP)
    shape = argument(inner, 1, "shape") if inner is not None and last_name(inner.func) in _SIZED else None
    sizes = {spec[w] if isinstance(w, int) and w < len(spec) else w for w in varied}
    return bool(sizes) and isinstance(shape, (ast.Tuple, ast.Name)) and sizes <= names_in(shape) and not any(
        isinstance(n, ast.Attribute) for n in below(shape))  # fmt: skip


def _in_state(look: Lookup, code: Syntax, body: ast.FunctionDef) -> Iterator[SharedKey]:
    """A key that lies in the training state, and that no line of the project puts back anew."""
    calls = code.inside(body, ast.Call)
    if not any(last_name(c.func) in _UPDATES for c in calls) or not any(
            code.qualified(c.func) in GRADIENTS for c in calls):  # fmt: skip
        return
    outer = code.function(body)
    inside = outer is not None and any(last_name(c.func) in _UPDATES for c in code.inside(outer, ast.Call))
    for draw, key in draws(code, body) if not inside else ():
        own_key = code.assigned(key) if isinstance(key, ast.Name) else key
        if not isinstance(own_key, ast.Attribute) or not isinstance(own_key.value, ast.Name) or not (
                KEYS.search(own_key.attr)):
            own_key = _split_from(code, key)
        if own_key is not None and own_key.value.id in parameters(body) and not _put_back(look, code, body, own_key):  # type: ignore[attr-defined]
            yield _same("state", code, draw, f"no step changes {written(own_key)}: {body.name} neither folds the step "
                        "in nor puts a new key back")
            return


def _of_object(look: Lookup, code: Syntax, body: ast.FunctionDef) -> Iterator[SharedKey]:
    """A method that splits the key of its object and keeps none of the new ones: each call hands out the same."""
    owner = code.parent(body)
    if not isinstance(owner, ast.ClassDef) or is_pytree(owner) or _CALM.search(f"{owner.name} {body.name}"):
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
            yield _same("state", code, call, why, trains=False)


def _split_from(code: Syntax, key: ast.expr) -> ast.Attribute | None:
    """The attribute of a state that a key was split from: `_, drawn = split(self.rng)`."""
    made = [v.value if isinstance(v, ast.Subscript) else v for _, v in code.bindings(key)]
    own_key = made[0].args[0] if len(made) == 1 and isinstance(made[0], ast.Call) and made[0].args and (
        code.qualified(made[0].func) == "jax.random.split") else None  # fmt: skip
    plain = isinstance(own_key, ast.Attribute) and isinstance(own_key.value, ast.Name) and KEYS.search(own_key.attr)
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
    at, place = LOOPS[code.qualified(call.func)]
    found = body_of(look, code, argument(call, at, "f", "body_fun"))
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
    for draw, key in (*draws(home, body), *handed_on(look, home, body)):
        text = written(key)
        if not _bound_in(home, key, body, carry):
            if isinstance(key, ast.Name) and _from_outside(home, body, key, names):
                yield _same("scan", home, draw, f"{text} comes from outside the body of {kind}", trains)
        elif outcomes and all(_carried(home, o, key, carry) for o in outcomes):
            what = f"{text} is carried on by the {kind} at {code.at(call)} as it came, neither split nor folded"
            yield _same("scan", home, draw, what, trains)


def _bound_in(code: Syntax, key: ast.expr, body: Body, carry: str) -> bool:
    """Whether a key is the carry, a part of it, or a name that only the carry's unpacking binds."""
    if isinstance(key, ast.Name):
        stored = stores(code, body, key.id)
        if key.id == carry:
            return not stored
        return len(stored) == 1 and head_of(stored[0]) == carry
    return head_of(key) == carry and not stores(code, body, written(key)) and not stores(code, body, carry)


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
    if key.id in names or stores(code, body, key.id):
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
        found = body_of(look, code, call.func)
        if found is None or isinstance(found[1], ast.Lambda):
            continue
        spec = [n for n in parameters(found[1]) if n not in ("self", "cls")][found[2]:]
        for name in spec:
            key = argument(call, spec.index(name), name)
            if key is None:
                continue
            folded = isinstance(key, ast.Call) and code.qualified(key.func) == "jax.random.fold_in" and isinstance(
                argument(key, 1, "data"), (ast.Name, ast.Constant))  # fmt: skip
            if not (folded or isinstance(key, (ast.Name, ast.Attribute))) or written(key) in targets or (
                    _changes(code, key, loops[:1], folded)):  # fmt: skip
                continue
            if not KEYS.search(name) and not KEYS.search(last_name(key)):
                continue
            draw = drawn_from(look, found[0], found[1], name, DEEP)
            if draw is not None:
                what = f"{written(key)} is handed to {written(call.func)} in every iteration and never replaced"
                yield _same("call", code, call, what)


def _changes(code: Syntax, key: ast.expr, loops: list[ast.AST], folded: bool = False) -> bool:
    """Whether the loop binds the key, or what holds it, anew."""
    names = {written(key), *names_in(key)} - {"self"}
    stored = {written(n) for loop in loops for n in below(loop)
              if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store)}  # fmt: skip
    return bool(names & stored) or not (folded or code.bindings(key) or isinstance(key, ast.Name))


