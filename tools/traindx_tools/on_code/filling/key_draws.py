"""Draws of JAX that share a key, by following the keys through the functions of a project."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import argument, last_name, names_in, written
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.values import Const, Operation, Symbol, Table, Thing, Value, parts
from traindx_tools.program.keys import SharedKey

_KEYS = re.compile(r"key|rng|seed|prng", re.IGNORECASE)
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
            "reuse", second.event.file.segment(second.event.node), spot_of(_caller(first, second)),
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
        yield SharedKey("loop", event.file.segment(event.node), spot_of(event), f"the key{made} is made of the same "
                        f"numbers in every turn of the loop at {loop.file.path}:{loop.line}")
        return
    yield SharedKey(
        "loop", outer.file.segment(outer.node), spot_of(outer),
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
    keys = {n for n in names if _KEYS.search(n)}
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
