"""Draws of JAX that share a key, by following the keys through the functions of a project."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Body, Lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import Const, Operation, Symbol, Table, Thing, Value, parts
from traindx_tools.program.traced import SharedKey

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


_NAMED_KEYS = re.compile(r"key|rng|seed|prng", re.IGNORECASE)
_APPLIES = frozenset({"apply", "apply_fn"})
_EVALUATES = re.compile(r"valid|eval|preview|visuali|(^|_)log(_|$)", re.IGNORECASE)
_ORDERS = frozenset({"choice", "permutation", "shuffle"})
_NO_USE = frozenset({"PRNGKey", "key", "fold_in", "key_data", "wrap_key_data", "clone", "key_impl"})


def shared_keys(project: Project) -> Iterator[SharedKey]:
    """Follow the keys through each entry of the project."""
    for root in project.roots_with({e.method for e in project.events if _used_key(e) is not None}):
        uses: dict[object, list[Place]] = {}
        for place in project.places(root):
            key = _used_key(place.event)
            if key is not None:
                uses.setdefault(_identity(key, place), []).append(place)
        for places in uses.values():
            constant = next((f for p in places for f in _constant_in_loop(p)), None)
            if constant is not None:
                yield constant
            else:
                yield from _twice(places)


def _identity(key: Value, place: Place) -> object:
    """A key by itself; an argument also by the entry that it belongs to (an object is made before its method runs)."""
    return (key, id(place.path[1]) if len(place.path) > 1 else 0) if isinstance(key, Symbol) else id(key)


def _used_key(event: Event) -> Value | None:
    if event.kind != "call":
        return None
    key: Value | None = None
    if event.name.startswith("jax.random.") and event.method not in _NO_USE:
        key = event.args[0] if event.args else event.kwargs.get("key")
    elif event.method in ("apply", "apply_fn") and isinstance(event.kwargs.get("rngs"), Table):
        rngs = event.kwargs["rngs"]
        key = next(iter(rngs.items.values()), None) if isinstance(rngs, Table) else None
    if isinstance(key, Thing) and key.type in ("jax.key", "jax.random.PRNGKey", "jax.random.key"):
        return key
    return key if isinstance(key, Symbol) and key.role == "parameter" else None


def _twice(places: list[Place]) -> Iterator[SharedKey]:
    for first, second in itertools.pairwise(places):
        same_call = first.event is second.event and first.path[-1] is second.path[-1]
        if _exclusive(first, second) or (same_call and first.loops != second.loops):
            continue
        if first.event.node is second.event.node and [b.node for b in first.path] == [b.node for b in second.path]:
            continue  # one use, followed twice
        if _drawn_alike(first.event, second.event) or _renews(first.event):
            continue
        if _in_evaluation(_caller(first, second), second.event):
            continue
        after_split = first.event.method == "split"
        alike = first.event.method == second.event.method and not same_call
        applied = {first.event.method, second.event.method} <= _APPLIES  # flax folds a module's path into its key
        why = "was split there: its children are derived from it" if after_split and not alike else (
            "gives both draws the same random stream")
        yield SharedKey(
            "reuse", second.event.text, _caller(first, second).spot,
            f"was used before at {_at(first.event)}, and {why} (drawn from at {_at(second.event)})",
            certain=(after_split or alike) and not same_call and not applied, by_path=applied)
        return


def _in_evaluation(outer: Event, event: Event) -> bool:
    """Whether an evaluation is called with the key: the same noise each time, so that they can be compared."""
    node = outer.node
    return outer is not event and isinstance(node, ast.Call) and _EVALUATES.search(last_name(node.func)) is not None


def _renews(event: Event) -> bool:
    """Whether the object whose key is split gets another one there: `self.rng, key = split(self.rng)`."""
    key = event.node.args[0] if isinstance(event.node, ast.Call) and event.node.args else None
    if event.method != "split" or not isinstance(key, ast.Attribute) or event.function is None:
        return False
    stored = (n for n in below(event.function.node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return any(written(n) == written(key) and n.lineno >= event.line for n in stored)


def _caller(first: Place, second: Place) -> Event:
    """The second use, seen from the function in which both uses lie."""
    common = [b for b, c in zip(first.path, second.path, strict=False) if b is c]
    inner = second.path[len(common) :]
    call = next((b for b in inner if b.kind == "call"), None)
    if call is None:
        return second.event
    owner = next((b.function for b in reversed(common) if b.kind == "call"), None)
    return Event("call", second.event.name, second.event.method, call.node, call.file, owner)


def _at(event: Event) -> str:
    return f"{event.file.path}:{event.line}"


def _exclusive(first: Place, second: Place) -> bool:
    """Whether the two lie in different branches of one condition, or the first in one that what follows never sees."""
    ours = {id(b.node): b for b in first.path if b.kind == "branch"}
    if any(b.kind == "branch" and id(b.node) in ours and ours[id(b.node)] is not b for b in second.path):
        return True
    common = sum(a is b for a, b in zip(first.path, second.path, strict=False))
    apart = [b.node for path in (first.path, second.path) for b in path[common : common + 1] if b.kind == "call"]
    if len(apart) == 2 and apart[0] is apart[1] and _is_choice(apart[0]):
        return True
    for block in first.path[common:]:
        if block.kind in ("call", "loop"):
            return False
        if block.kind == "branch" and block.left:
            return True
    return False


def _is_choice(node: ast.AST) -> bool:
    """`lax.cond` and `lax.switch` run one of the functions that they get."""
    return isinstance(node, ast.Call) and last_name(node.func) in ("cond", "switch")


def _drawn_alike(first: Event, second: Event) -> bool:
    """Whether one order, or one choice of rows, is meant for two arrays that belong together (x and y)."""
    one, two = first.node, second.node
    if first.method != second.method or first.method not in _ORDERS:
        return False
    if not isinstance(one, ast.Call) or not isinstance(two, ast.Call):
        return False
    of, other = (argument(call, 1, "x", "a") for call in (one, two))
    rest = [sorted([written(a) for a in call.args[2:]] + [f"{k.arg}={written(k.value)}" for k in call.keywords
            if k.arg not in ("key", "x", "a")]) for call in (one, two)]  # fmt: skip
    return of is not None and other is not None and written(of) != written(other) and rest[0] == rest[1]


def _constant_in_loop(place: Place) -> Iterator[SharedKey]:
    event = place.event
    key = _used_key(event)
    if key is None:
        return
    loop = _repeating(place, key)
    if loop is None or any(b.kind == "call" and _is_choice(b.node) for b in place.path[place.path.index(loop):]):
        return  # a choice inside the loop: whether more than one turn comes to the draw is not known
    outer = _in_loop(place, loop)
    if _in_evaluation(outer, event):
        return
    made = f" made at {key.site}" if isinstance(key, Thing) else ""
    if isinstance(key, Thing) and loop in key.born_in:
        yield SharedKey("loop", event.text, event.spot, f"the key{made} is made of the same "
                        f"numbers in every turn of the loop at {loop.file.path}:{loop.line}")
        return
    yield SharedKey(
        "loop", outer.text, outer.spot,
        f"the key{made} is neither split nor folded in by the loop at {loop.file.path}:{loop.line} (drawn from at "
        f"{_at(event)})",
        trains=bool({"grad", "value_and_grad", "update", "apply_updates", "tree_map"} & loop.methods),
        origin=None if _split_over(outer, loop) else (outer.file, outer.node, loop.node))


def _split_over(outer: Event, loop: Block) -> bool:
    """Whether the loop goes over what the same key was split into: the new names are meant to be used."""
    given = names_in(outer.node) & names_in(loop.node.iter) if isinstance(loop.node, ast.For) else set()
    return bool(given) and isinstance(loop.node, ast.For) and "split" in written(loop.node.iter)


def _in_loop(place: Place, loop: Block) -> Event:
    """The use as it stands in the loop's own function: the call through which it is reached, or itself."""
    inner = place.path[place.path.index(loop) + 1 :]
    call = next((b for b in inner if b.kind == "call"), None)
    if call is None:
        return place.event
    return Event("call", place.event.name, place.event.method, call.node, call.file, loop.function)


def _replaced(place: Place, loop: Block) -> bool:
    """Whether the loop binds anew a name that is handed to the call through which the key is used."""
    node = _in_loop(place, loop).node
    given = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
    objects = {id(n.value) for a in given for n in below(a) if isinstance(n, ast.Attribute)}  # `rng.integers`
    names = {n.id for a in given for n in below(a) if isinstance(n, ast.Name) and id(n) not in objects}
    keys = {n for n in names if _NAMED_KEYS.search(n)}
    return not keys or bool(keys & _assigned(loop.node))


def _repeating(place: Place, key: Value) -> Block | None:
    """The innermost loop that goes round with the same key: it is made outside and not replaced inside."""
    last = max((i for i, b in enumerate(place.path) if b.kind == "call"), default=0)
    node = place.event.node
    name = node.args[0] if isinstance(node, ast.Call) and node.args else None
    for i in range(len(place.path) - 1, -1, -1):
        loop = place.path[i]
        if loop.kind != "loop" or not isinstance(loop.node, (ast.For, ast.While)):
            continue
        if isinstance(key, Thing) and loop in key.born_in:
            return loop if place.event.differentiated and _is_fixed(key, loop) else None
        if i < last:
            return loop if isinstance(key, Thing) and not _replaced(place, loop) else None
        if isinstance(name, ast.Name):
            return None if name.id in _assigned(loop.node) else loop
        return loop if isinstance(key, Thing) and place.event.method == "apply" else None
    return None


def _is_fixed(key: Value, loop: Block) -> bool:
    """Whether a key is made in each turn of a loop, of what is the same in all of them: constants."""
    if isinstance(key, Thing) and key.type in ("jax.key", "jax.random.PRNGKey", "jax.random.key"):
        return loop in key.born_in and bool(key.args) and all(_is_fixed(a, loop) for a in key.args)
    return isinstance(key, (Const, Operation)) and all(isinstance(p, (Const, Operation)) for p in parts(key))


def _assigned(loop: ast.AST) -> set[str]:
    return {n.id for n in below(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
