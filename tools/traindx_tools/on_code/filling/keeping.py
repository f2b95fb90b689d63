"""What keeps values over the steps of a program, from the events of the follower: lists, sums, hooks, arrays."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.tensors import written_at
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Const,
    Instance,
    Operation,
    Parameters,
    Site,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    number,
    parts,
    unwrap,
)
from traindx_tools.program.moments import Kept, Spot
from traindx_tools.program.uses import KeptArray

_NO_GRAPH = frozenset({"gradient", "maybe_detached"})
_CUT = frozenset({"size", "numel", "dim", "nelement", "item", "tolist", "len", "detach", "numpy"})
_UNKNOWN_LENGTH = 0.0
SUMS = ("augmented", "blended", "carried")
"""Kinds of events by which a value holds more from turn to turn."""
JOINS = frozenset({"stack", "cat", "sum", "concatenate"})


class Keeping:
    """Notes what is kept and what is emptied."""

    def __init__(self) -> None:
        self._also: dict[int, set[Hashable]] = {}
        """What a container is known by beside its identity: the attribute of a class, a dict around it."""
        self._filled: set[Hashable] = set()
        self._sums: set[Site] = set()
        """Where sums are taken: their own assignments begin nothing anew."""

    def expect(self, project: Project) -> None:
        """Looks ahead at what will be filled: what empties anything else is of no interest."""
        for event in project.events:
            if event.kind == "store" and event.args and isinstance(event.args[0], (Bag, Table)):
                self._also.setdefault(id(event.args[0]), set()).update(_places(event))
        for event in project.events:
            sums = event.kind in SUMS
            if sums or (event.kind == "call" and isinstance(event.receiver, (Bag, Table))):
                self._filled |= self._known_by(event)
                self._sums |= {event.site} if sums else set()

    def given(self, event: Event) -> Kept | None:
        """What a list, or another container, is given; None where that carries no graph."""
        value = event.args[-1] if event.args else None
        found = self._kept(event, value) if value is not None else None
        return found if found is None or event.grad is not False or found.carries else None

    def added(self, event: Event) -> Kept | None:
        """What is added to a sum, or mixed into an average."""
        if event.kind == "augmented" and event.name != "augmented.+":
            return None
        if event.kind == "carried" and carries(event.args[1]) is not True:
            return None  # whoever makes it may cut it
        return self._kept(event, event.args[1]) if event.grad is not False else None

    def emptied(self, event: Event) -> Kept | None:
        """What begins anew or loses what it held."""
        if event.kind not in ("store", "delete", "call") or not self._filled:
            return None
        known = self._known_by(event)
        if event.kind == "store":
            old = event.args[1] if len(event.args) > 1 else None
            if isinstance(old, Const) and old.value is None and not isinstance(event.args[0], Const):
                return None  # `if total is None: total = loss`: it was empty
            known |= self._object(old) if not _is_item(event) else frozenset()
            if event.site in self._sums or _is_first(event) or (_is_item(event) and not _is_slice(event)):
                return None
        known &= self._filled
        return Kept(known, event.text) if known else None

    def joined(self, event: Event) -> Kept | None:
        """A container whose values are made one: what is sent backward tells whether that ends their life."""
        first = event.args[0] if event.args and event.method in JOINS else None
        known = self._object(first) & self._filled if isinstance(first, Bag) else frozenset()
        return Kept(known, own=own(event.result)) if known else None

    # ---- containers

    def _kept(self, event: Event, value: Value) -> Kept | None:
        """The fact, where a value may carry a graph."""
        carried, gradient = carries(value), isinstance(value, Tensor) and "gradient" in value.tags
        known = self._known_by(event)
        if (carried is False and not gradient) or not known:
            return None
        holder = _holder(event)
        name = event.kind != "call" and not isinstance(event.args[0], Bag) and _target(event) is not None
        given = value.items if isinstance(value, Bag) and value.kind == "tuple" else []
        return Kept(
            known, event.text, born_in(holder),
            event.crossing if name and not isinstance(holder, (Bag, Table, Instance, Thing)) else None,
            _bound(holder), carried, _hanging(value) | _made_of(value),
            own(event.result) if event.kind not in ("call", "carried") and not isinstance(
                event.result, Bag) else frozenset(),
            gradient,
            own(value) if event.kind == "call" else frozenset(),
            tuple(i for i, v in enumerate(given) if carries(v) is not False))

    def _known_by(self, event: Event) -> frozenset[Hashable]:
        """The container of an event, by all that it is known by."""
        if event.kind in ("augmented", "blended") and isinstance(event.args[0], Bag):
            return self._object(event.args[0])
        if event.kind in ("call", "delete"):
            return self._object(event.receiver)
        return frozenset(_places(event)) | (self._object(event.receiver) if _is_item(event) else frozenset())

    def _object(self, value: Value | None) -> frozenset[Hashable]:
        if not isinstance(value, (Bag, Table)):
            return frozenset()
        also = self._also.get(id(value), set())
        around = [a for k in also if isinstance(k, int) for a in self._also.get(k, ())]
        return frozenset({id(value), *also, *around})


def _places(event: Event) -> list[Hashable]:
    """The places that a store, or a sum, is written to: an attribute of an object and its class, a name, a dict."""
    target = _target(event)
    owner = event.receiver
    if event.kind == "carried":
        target = ast.Name(event.method)
    if (event.kind == "store" and event.name.startswith("attribute.")) or isinstance(target, ast.Attribute):
        name = target.attr if isinstance(target, ast.Attribute) else event.name.partition(".")[2]
        return [(id(owner), name), (owner.klass.info.name, name)] if isinstance(owner, Instance) else (
            [(id(owner), name)] if isinstance(owner, (Thing, Table)) else [])
    if isinstance(target, ast.Subscript):
        if isinstance(owner, (Bag, Table)):
            return [id(owner)]
        target = target.value
    function = event.function.qualified if event.function is not None else ""
    return [(event.file.path, function, target.id)] if isinstance(target, ast.Name) else []


def _target(event: Event) -> ast.AST | None:
    """What a store or a sum is written to."""
    node = event.node
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Assign):
        return node.targets[0]
    return node if event.kind == "store" else None


def _is_item(event: Event) -> bool:
    return event.kind == "store" and event.name.startswith("item.")


def _is_slice(event: Event) -> bool:
    index = event.args[1] if len(event.args) > 1 else None
    return isinstance(index, Bag) and index.kind == "slice"


def _is_first(event: Event) -> bool:
    """Whether an object is being made: what its constructor stores into it begins nothing anew."""
    owner, info = event.receiver, event.function
    return isinstance(owner, Instance) and info is not None and info.name in ("__init__", "__post_init__") and (
        info.owner in owner.klass.info.lineage())


def _holder(event: Event) -> Value | None:
    """The object whose life decides how long a value is kept."""
    old = event.args[0] if event.kind in ("augmented", "blended") else None
    return old if isinstance(old, Bag) else event.receiver


def born_in(holder: Value | None) -> frozenset[str]:
    """The loops in each turn of which an object is made anew."""
    loops: Iterable[object] = getattr(holder, "born_in", ())
    return frozenset(f"{b.file.path}:{b.line}" for b in loops if isinstance(b, Block))


def _bound(holder: Value | None) -> float | None:
    if not isinstance(holder, Bag) or holder.bound is None:
        return None
    known = number(holder.bound)
    return _UNKNOWN_LENGTH if known is None else known


# ---- values


def carries(value: Value | None, depth: int = 4) -> bool | None:
    """Whether the graph of a module hangs on a value; None where only what is sent backward can tell."""
    if isinstance(value, Tensor):
        if value.grad is False or value.tags & _NO_GRAPH:
            return False
        return True if value.grad and value.models else None
    if isinstance(value, (Symbol, Operation)):
        return None if own(value) else False
    found = {carries(v, depth - 1) for v in _inside(value)} if depth else set()
    return True if True in found else None if None in found else False


def own(value: Value | None, depth: int = 4) -> frozenset[Hashable]:
    """A value in terms of `Act.traces`: where it arose, or the unknown thing that it is."""
    if isinstance(value, Tensor):
        return frozenset({str(value.site)} if value.site is not None else ())
    if isinstance(value, (Symbol, Operation)):
        made = value != UNKNOWN and not _is_cut(value) and any(
            isinstance(p, Symbol) and p.role in ("call", "output") for p in parts(value))
        return frozenset({value} if made else ())
    return frozenset(o for v in _inside(value) for o in own(v, depth - 1)) if depth else frozenset()


def _hanging(value: Value) -> frozenset[Hashable]:
    """`own` of the parts that a graph may hang on: a value that was cut keeps nothing, whatever it was cut from."""
    given = _inside(value) or [value]
    return frozenset(o for v in given if carries(v) is not False or (isinstance(v, Tensor) and "gradient" in v.tags)
                     for o in own(v))


def _is_cut(value: Value) -> bool:
    """Whether no graph hangs on something unknown: a number of elements, what was detached, what is reckoned with
    such values alone."""
    if isinstance(value, Operation):
        return bool(value.operands) and all(isinstance(v, Const) or _is_cut(v) for v in value.operands)
    return isinstance(value, Symbol) and (
        value.name.partition("@")[0] in _CUT if value.role == "call" else value.name in ("shape", "ndim", "data"))


def _made_of(value: Value) -> frozenset[Hashable]:
    """What hangs on the graph of a value, too: a share of a loss keeps as much as the loss."""
    return frozenset(map(str, value.parents)) if isinstance(value, Tensor) and value.grad is not False else frozenset()


def traces(value: Value | None) -> frozenset[Hashable]:
    """What a value was computed from: places and unknown things."""
    if isinstance(value, Tensor):
        return frozenset(map(str, value.parents)) | own(value)
    if isinstance(value, (Symbol, Operation)):
        found = list(parts(value))
        inner = frozenset(o for p in found if isinstance(p, Tensor) for o in traces(p))
        return inner | frozenset(p for p in found if isinstance(p, (Symbol, Operation)) and p != UNKNOWN)
    return frozenset()


def _inside(value: Value | None) -> list[Value]:
    if isinstance(value, Bag) and value.kind in ("tuple", "list"):
        return value.items[:20]
    if isinstance(value, Table):
        return [*list(value.items.values())[:20], *([value.rest] if value.rest is not None else [])]
    if isinstance(value, Instance) and not value.klass.info.is_module and value.klass.info.is_dataclass:
        return list(value.attrs.values())[:20]
    return []


# ---- hooks


def hooked(event: Event) -> Kept | None:
    """The object that a hook is registered on, and how long it lives; None where that is not known."""
    owner = event.receiver
    lives = _lives(owner)
    return None if owner is None or lives is None else Kept(frozenset({id(owner)}), born=lives)


def _lives(value: Value | None) -> frozenset[str] | None:
    """The loops in each turn of which a module, or a parameter of it, is made anew; None where that is not known."""
    held = value.state.get("of") if isinstance(value, Thing) else None
    if isinstance(held, Parameters):
        found = [_lives(m) for m in held.modules]
        return None if None in found else frozenset(b for f in found if f for b in f)
    if isinstance(value, (Thing, Instance)):
        return born_in(unwrap(value))
    if not isinstance(value, Symbol) or value == UNKNOWN:
        return None
    chain = [p for p in parts(value) if not isinstance(p, Operation)]
    for at, one in enumerate(chain):
        if not isinstance(one, Symbol):
            return _lives(one) if isinstance(one, (Thing, Instance)) else None
        above = chain[at + 1] if at + 1 < len(chain) else None
        inside = one.role == "call" and one.name.partition("@")[0] in words("calls.toml", "inside", "methods")
        of_inside = one.role == "iteration" and isinstance(above, Symbol) and above.role == "call"
        if not (inside or of_inside or one.role in ("parameter", "global", "import", "attribute", "item")):
            return None
    return frozenset()


_KEEPS = ("append", "appendleft", "add", "insert", "extend")


def kept_arrays(project: Project) -> Iterator[KeptArray]:
    """Every array that a loop puts into a list as it is."""
    told: set[Site] = set()
    for root in project.roots_with(_KEEPS):
        for place in root.places:
            event = place.event
            if event.method not in _KEEPS or not place.loops or not isinstance(event.receiver, Bag):
                continue
            for value in _flat(event.args, 3):
                site = written_at(value) if isinstance(value, Tensor) else None
                if site is not None and site not in told:
                    told.add(site)
                    yield KeptArray(event.text, event.spot, _handed(project, site), str(site))


def _flat(values: tuple[Value, ...] | list[Value], left: int) -> Iterator[Value]:
    for value in values:
        if isinstance(value, Bag) and left:
            yield from _flat(value.items, left - 1)
        else:
            yield value


def _handed(project: Project, site: Site) -> Spot:
    """Where the method that writes returns what it wrote into."""
    file = project.file(site.path)
    bodies = [f for f in syntax(file).of(ast.FunctionDef) if f.lineno <= site.line <= (f.end_lineno or 0)
              ] if file else []
    returns = [n for n in below(bodies[-1]) if isinstance(n, ast.Return)] if bodies else []
    return syntax(file).spot(returns[-1]) if file and returns else Spot(site.path, site.line)
