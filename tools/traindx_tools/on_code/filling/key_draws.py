"""Draws of JAX that share a key, by following the keys through a program: drawn from twice, or the same in each turn.

A turn is one of a Python loop, of a loop of `jax.lax` (whose carry hands the key on as it came), of a comprehension, or
one row of what a function is mapped over.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import argument, last_name, names_in, parameters, syntax, written
from traindx_tools.on_code.trace import Block, Event, Place
from traindx_tools.on_code.turns import PUTS, is_same
from traindx_tools.on_code.values import Bag, Symbol, Table, Thing, Value, parts
from traindx_tools.program.traced import SharedKey

_KEYS = frozenset({"jax.key", "jax.random.PRNGKey", "jax.random.key"})
_APPLIES = frozenset({"apply", "apply_fn"})
_EVALUATES = re.compile(r"valid|eval|preview|visuali|(^|_)log(_|$)", re.IGNORECASE)
CALM = re.compile(r"eval|valid|(^|_)test|sampl|generat|fixed|init|plot|render", re.IGNORECASE)
_COPIES = re.compile(r"copies|copy|same|shared|replicat|broadcast|sweep|repeat|bench|determin|reproduc|^test_")
_ORDERS = frozenset({"choice", "permutation", "shuffle"})
NO_USE = frozenset({"PRNGKey", "key", "fold_in", "key_data", "wrap_key_data", "clone", "key_impl", "seed"})
_SIZED = frozenset({"normal", "uniform", "truncated_normal", "orthogonal"})
_TRAINS = frozenset({"grad", "value_and_grad", "update", "apply_updates", "apply_gradients", "tree_map"})


def shared_keys(project: Project) -> Iterator[SharedKey]:
    """Follow the keys through each entry of the project."""
    for root in project.roots_with({e.method for e in project.events if used_key(e) is not None}):
        uses: dict[object, list[Place]] = {}
        for place in project.places(root):
            key = used_key(place.event)
            if key is not None:
                uses.setdefault(_identity(key, place), []).append(place)
        for places in uses.values():
            constant = next((found for p in places if (found := list(_in_turns(p)))), None)
            yield from constant or _twice([p for p in places if not _makes_layer(p.event)])


def _identity(key: Value, place: Place) -> object:
    """A key by itself; an argument also by the entry that it belongs to (an object is made before its method runs)."""
    return (key, id(place.path[1]) if len(place.path) > 1 else 0) if isinstance(key, Symbol) else id(key)


def used_key(event: Event) -> Value | None:
    """The key that a call draws from, or splits."""
    if event.kind != "call":
        return None
    key: Value | None = None
    if event.name.startswith("jax.random.") and event.method not in NO_USE:
        key = event.args[0] if event.args else event.kwargs.get("key")
    elif event.method in _APPLIES and isinstance(event.kwargs.get("rngs"), Table):
        rngs = event.kwargs["rngs"]
        key = next(iter(rngs.items.values()), None) if isinstance(rngs, Table) else None
    elif _makes_layer(event):
        key = event.kwargs.get("key")
    plain = isinstance(key, Symbol) and any(isinstance(p, Symbol) and p.role == "parameter" for p in parts(key))
    return key if plain or (isinstance(key, Thing) and key.type in _KEYS) else None


def _makes_layer(event: Event) -> bool:
    return event.name.startswith("equinox.nn.") and "key" in event.kwargs


# --- the same in each turn

def _in_turns(place: Place) -> Iterator[SharedKey]:
    """The innermost block that goes round with the same key, and those around the calls by which it is reached."""
    key = used_key(place.event)
    assert key is not None
    varies: int | None = None
    for at in range(len(place.path) - 1, -1, -1):
        block, inner = place.path[at], place.path[at + 1:]
        if block.kind not in ("loop", "scan", "map") or any(_is_choice(b.node) for b in inner if b.kind == "call"):
            continue  # a choice inside: whether more than one turn comes to the draw is not known
        if not is_same(key, block):
            varies = at
            continue
        if varies is not None and not (_TRAINS & block.methods and any(
                b.kind == "call" for b in place.path[at:varies])):
            return
        found = _told(place, key, block, inner)
        if found is not None:
            yield found
            varies = at


def _told(place: Place, key: Value, block: Block, inner: tuple[Block, ...]) -> SharedKey | None:
    event, outer = place.event, _seen_from(place, inner, block)
    trains = bool(_TRAINS & block.methods)
    split = isinstance(key, Thing) and block in key.born_in and last_name(getattr(key.node, "func", None)) == "split"
    if split or _in_evaluation(outer, event):
        return None  # what was split is told where it is split
    if block.kind == "map":
        return _of_rows(event, key, block, outer)
    if block.kind == "scan":
        carried = isinstance(block.subject, Value) and key in _leaves(block.subject)
        why = f"is carried on by the loop at {block.file.path}:{block.line} as it came, neither split nor folded" if (
            carried) else f"comes from outside the body of the loop at {block.file.path}:{block.line}"
        return SharedKey("scan", outer.text, outer.spot, f"its key {why}", trains)
    if isinstance(block.node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
        return _of_one_list(event, block, outer)
    if not isinstance(block.node, (ast.For, ast.While)):
        return None
    made = f" made at {key.site}" if isinstance(key, Thing) else ""
    if isinstance(key, Thing) and block in key.born_in and not any(isinstance(a, Thing) for a in key.args):
        return SharedKey("loop", event.text, event.spot, f"the key{made} is made of the same numbers in every turn of "
                         f"the loop at {block.file.path}:{block.line}") if event.differentiated else None
    if _puts_anew(event) or (outer is not event and not event.differentiated and not _takes_back(outer)):
        return None
    return SharedKey(
        "loop", outer.text, outer.spot, f"the key{made} is neither split nor folded in by the loop at "
        f"{block.file.path}:{block.line} (drawn from at {_at(event)})", trains,
        origin=None if _split_over(outer, block) else (outer.file, outer.node, block.node))


def _leaves(value: Value, left: int = 4) -> list[Value]:
    inner = value.items if isinstance(value, Bag) else list(value.items.values()) if isinstance(value, Table) else []
    return [value, *(v for one in inner if left for v in _leaves(one, left - 1))]


def _of_rows(event: Event, key: Value, block: Block, outer: Event) -> SharedKey | None:
    """A mapped function that ignores its rows, or that takes one key for all of them on the way to a gradient."""
    body = next((b for b in block.body if isinstance(b, Block) and b.kind == "call" and b.function is not None), None)
    around = block.function.name if block.function is not None else ""
    if body is None or body.function is None or _COPIES.search(f"{around} {body.function.name}"):
        return None
    given = [n for n in parameters(body.function.node) if n not in ("self", "cls")]
    rows = block.subject.items if isinstance(block.subject, Bag) else []
    if given and not set(given) & {n.id for n in below(body.function.node) if isinstance(n, ast.Name)}:
        where = outer if outer.file is body.function.file else event
        return SharedKey("map", where.text, where.spot, f"the mapped function ignores {given[0]}, and draws every row "
                         "with one key")
    if any(v is key or v == key for r in rows for v in _leaves(r)) and event.differentiated:
        call = Event("call", "", "", block.node, block.file, block.function)
        return SharedKey("rows", call.text, call.spot, "one key is given for all rows that are mapped", trains=False)
    return None


def _of_one_list(event: Event, block: Block, outer: Event) -> SharedKey | None:
    """A list of which every row is drawn with one key; rows that differ in more than their size are compared by it."""
    node, name = block.node, block.function.name if block.function is not None else ""
    bound = {n.id for g in getattr(node, "generators", ()) for n in below(g.target) if isinstance(n, ast.Name)}
    varied = bool(bound & names_in(getattr(node, "elt", node)))
    sized = _makes_layer(event) or (event.method in _SIZED and (shape := event.argument(1, "shape")) is not None
                                    and not is_same(shape, block))
    if _COPIES.search(name) or (varied and (not sized or CALM.search(name.removeprefix("init")))):
        return None
    return SharedKey("list", outer.text, outer.spot, "every row of the list is drawn with one key", trains=False)


def _puts_anew(event: Event) -> bool:
    """Whether the function that draws from an object's key gives the like of that object with another key: which of
    both the next turn gets is not always known."""
    key = event.node.args[0] if isinstance(event.node, ast.Call) and event.node.args else None
    if not isinstance(key, ast.Attribute) or event.function is None:
        return False
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in PUTS
               and any(k.arg == key.attr for k in n.keywords) for n in below(event.function.node))


def _takes_back(outer: Event) -> bool:
    """Whether a call in a loop is given what it gave before: it goes on from there."""
    statement = syntax(outer.file).statement(outer.node)
    given = [*outer.node.args, *(k.value for k in outer.node.keywords)] if isinstance(outer.node, ast.Call) else []
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    bound = {written(n) for t in targets for n in (t.elts if isinstance(t, ast.Tuple) else [t])}
    return any(written(a) in bound for a in given) and not CALM.search(last_name(getattr(outer.node, "func", None)))


def _seen_from(place: Place, inner: tuple[Block, ...], block: Block) -> Event:
    """The use as it stands in the block's own function: the call through which it is reached, or itself."""
    calls = [b for b in inner if b.kind == "call"]
    if block.kind != "loop":  # the first is what is mapped, or the body of a loop
        calls = calls[1:]
    return Event("call", place.event.name, place.event.method, calls[0].node, calls[0].file, block.function) if (
        calls) else place.event


def _split_over(outer: Event, loop: Block) -> bool:
    """Whether the loop goes over what the same key was split into: the new names are meant to be used."""
    given = names_in(outer.node) & names_in(loop.node.iter) if isinstance(loop.node, ast.For) else set()
    return bool(given) and isinstance(loop.node, ast.For) and "split" in written(loop.node.iter)


def _is_choice(node: ast.AST) -> bool:
    """`lax.cond` and `lax.switch` run one of the functions that they get."""
    return isinstance(node, ast.Call) and last_name(node.func) in ("cond", "switch")


# --- drawn from twice

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
