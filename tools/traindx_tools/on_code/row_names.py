"""What names stand for when rows are followed backwards: in the call at hand, in what is around it, in an object."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.source import below, children
from traindx_tools.on_code.syntax import FunctionNode, Syntax
from traindx_tools.program.moments import Spot
from traindx_tools.program.rows import Rows, Step

_MOST, _DEEP = 6_000, 24
Set = frozenset[Rows]
NOTHING: Set = frozenset()


@dataclass(eq=False)
class Seq:
    """Values by their number."""

    at: Callable[[int], Value]
    length: int | None = None

    def all(self) -> list[Value]:
        """Some of them."""
        return [self.at(i) for i in range(3 if self.length is None else min(self.length, 6))]


@dataclass(eq=False)
class Named:
    """Values by their name."""

    get: Callable[[object], Value]
    names: tuple[object, ...] = ()


@dataclass(eq=False)
class Made:
    """An object of a class of the project. `noise`: a switch that was left on when it was made, in the call `maker`."""

    kind: ast.ClassDef
    init: Frame
    noise: Step | None = None
    maker: Frame | None = None


@dataclass(eq=False)
class Said:
    """A text or number that is written."""

    value: object


@dataclass(eq=False)
class Body:
    """A function of the project with what is around it."""

    code: Syntax
    node: ast.AST
    around: Frame | None
    owner: Made | None = None


Value = Set | Seq | Named | Made | Said | Body


@dataclass(eq=False)
class Frame:
    """One call: what its names are given, by which calls it was reached (`key`), whether in turns, and by whom."""

    code: Syntax
    scope: ast.AST
    given: dict[str, Value | tuple[ast.expr, Frame]] = field(default_factory=dict)
    up: Frame | None = None
    owner: Made | None = None
    key: tuple[Hashable, ...] = ()
    turns: bool = False
    called: tuple[ast.Call, Frame] | None = None

    def spot(self, node: ast.AST) -> Spot:
        """The place of a piece of its text."""
        return self.code.spot(node)

    def inside(self, method: ast.AST, made: Made) -> Frame:
        """A method of an object, nothing known of its arguments."""
        return Frame(self.code, method, owner=made, key=(*self.key, id(method)))


@dataclass(frozen=True, eq=False)
class Binding:
    """What a name is given. `turn`: it is one turn of a loop over the value; `adds`: it held something before."""

    at: ast.AST
    value: ast.expr
    path: tuple[int, ...] = ()
    turn: bool = False
    adds: bool = False
    line: int = 0


class Names:
    """Follows names. Each answer is kept; a value that leads back to itself adds nothing."""

    def __init__(self, look: Lookup) -> None:
        self.look, self.left = look, _MOST
        self._known: dict[tuple[int, Hashable], Value] = {}
        self._open: set[tuple[int, Hashable]] = set()
        self._bound: dict[int, dict[str, list[Binding]]] = {}
        self.handlers: dict[type[ast.AST], Callable[..., Value]] = {
            ast.Name: self._name, ast.Attribute: self._attribute,
            ast.Constant: lambda node, frame: Said(node.value),
            ast.Lambda: lambda node, frame: Body(frame.code, node, frame)}

    def of(self, node: ast.AST, frame: Frame) -> Value:
        """The value of an expression."""
        key = id(node), frame.key
        if key in self._known:
            return self._known[key]
        if key in self._open or self.left <= 0 or len(frame.key) > _DEEP:
            return NOTHING
        self.left -= 1
        self._open.add(key)
        handler = self.handlers.get(type(node))
        found = handler(node, frame) if handler is not None else self.union(ast.iter_child_nodes(node), frame)
        self._open.discard(key)
        self._known[key] = merged(found) if isinstance(found, frozenset) else found
        return self._known[key]

    def rows(self, node: ast.AST | None, frame: Frame) -> Set:
        """The rows that an expression is made of."""
        return self.flat(self.of(node, frame)) if node is not None else NOTHING

    def union(self, nodes: Iterable[ast.AST], frame: Frame) -> Set:
        """The rows of all of them."""
        return NOTHING.union(*(self.rows(n, frame) for n in nodes if isinstance(n, ast.expr)))

    def flat(self, value: Value, left: int = 4) -> Set:
        """All rows of a value, of what it holds as well."""
        if isinstance(value, frozenset):
            return value
        inner = [] if not left else value.all() if isinstance(value, Seq) else [
            value.get(n) for n in value.names] if isinstance(value, Named) else []
        if isinstance(value, Made) and left:
            return self.fetched(value)
        return NOTHING.union(*(self.flat(v, left - 1) for v in inner))

    def fetched(self, made: Made) -> Set:
        """The rows of a data set."""
        raise NotImplementedError

    def given(self, frame: Frame, name: str) -> Value:
        """What a call is given under a name."""
        value = frame.given.get(name, NOTHING)
        return self.of(*value) if isinstance(value, tuple) else value

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        if node.id == "self" and frame.owner is not None:
            return frame.owner
        for up in frame.code.above(node) if node.id not in frame.given else ():
            if isinstance(up, FunctionNode):
                break
            for over in getattr(up, "generators", ()):
                if node.id in dict(targets(over.target)) and not any(n is node for n in ast.walk(over.iter)):
                    return self.along(self.turn(self.of(over.iter, frame)), dict(targets(over.target))[node.id])
        at: Frame | None = frame
        while at is not None:
            if node.id in self.bindings(at):
                reached, certain = self._reaching(self.bindings(at)[node.id], node, at)
                values = [self.value(b, at) for b in reached]
                held, put = values[:1], [self.flat(v) for v, b in zip(values, reached, strict=True) if b.adds]
                if put and len(values) == len(put) + 1 and isinstance(held[0], Seq) and held[0].length and certain:
                    return extended(held[0], put)
                return self.joined([*values, *([] if certain or node.id not in at.given else [
                    self.given(at, node.id)])])
            if node.id in at.given:
                return self.given(at, node.id)
            outer = None if isinstance(at.scope, ast.Module) else Frame(at.code, at.code.file.tree)
            at = at.up or outer
        found = self.look.function(frame.code, node)
        around: Frame | None = frame if found is not None else None
        while around is not None and found is not None and around.scope is not found[0].scope(found[1]):
            around = around.up
        return Body(*found, around) if found is not None else NOTHING

    def _reaching(self, bound: list[Binding], use: ast.AST, frame: Frame) -> tuple[list[Binding], bool]:
        """The bindings that may reach a use, and whether one of them certainly does."""
        code, here = frame.code, frame.code.statement(use)
        inside, line = code.scope(use) is frame.scope, getattr(here, "lineno", 0)
        loops = code.loops(use) if inside else []
        above = {id(a) for a in code.above(use)} if inside else set()
        end = max((getattr(x, "end_lineno", 0) for x in loops), default=line) if inside else 1 << 30
        found: list[Binding] = []
        bound_anew: set[int] = set()
        """Blocks in which a later binding hides the earlier ones."""
        for one in reversed(bound[:bisect_right(bound, end, key=lambda b: b.line)]):
            runs, whole = self.runs(one.at, frame), code.statement(one.value) or one.at
            around = [id(code.block(s)) for s in (whole, *code.above(whole)) if isinstance(s, ast.stmt)]
            if runs is False or not bound_anew.isdisjoint(around):
                continue
            own = inside and code.statement(one.value) is here and (
                not one.turn or any(n is use for n in ast.walk(one.value)))
            if not inside or (not own and (one.line < line or (one.turn and one.line == line))):
                found.append(one)
                if not one.adds and (not inside or one.turn or runs or id(code.parent(whole)) in above):
                    return found[::-1], True
                bound_anew |= set() if one.adds or one.turn else {id(code.block(whole))}
            elif any(x in loops for x in code.loops(one.at)):
                found.append(one)
        return found[::-1], False

    def joined(self, values: list[Value]) -> Value:
        """What may be any of them; a list that is empty at first is what is put into it."""
        values = [v for v in values if not (isinstance(v, Seq) and v.length == 0)]
        one = values[0] if len(values) == 1 else next((v for v in values if not isinstance(v, (frozenset, Said))), None)
        return one if one is not None else NOTHING.union(*map(self.flat, values))

    def bindings(self, frame: Frame) -> dict[str, list[Binding]]:
        """What names are given in a function, "self.name" among them."""
        if id(frame.scope) not in self._bound:
            self._bound[id(frame.scope)] = _bindings(frame.code, frame.scope)
        return self._bound[id(frame.scope)]

    def value(self, bound: Binding, frame: Frame) -> Value:
        """What a binding gives."""
        value = self.of(bound.value, frame)
        return self.along(self.turn(value) if bound.turn else value, bound.path)

    def along(self, value: Value, path: tuple[int, ...]) -> Value:
        """The part of a value that a target is given."""
        for at in path:
            if isinstance(value, Made):
                names = fields(value.kind)
                value = self.kept(value, names[at]) if at < len(names) else NOTHING
            elif isinstance(value, Seq):
                value = value.at(at)
            elif isinstance(value, frozenset):
                value = frozenset(replace(r, place=(*r.place, at)) for r in value)
        return value

    def turn(self, value: Value) -> Value:
        """One turn of a loop over a value."""
        if isinstance(value, Seq):
            one = value.at(0)
            return one if value.length is None or not isinstance(one, frozenset) else self.flat(value)
        return frozenset(replace(r, whole=False) for r in self.flat(value))

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        value = self.of(node.value, frame)
        if isinstance(value, Made):
            return self.kept(value, node.attr)
        return value.get(node.attr) if isinstance(value, Named) else self.column(value, node.attr)

    def column(self, value: Value, name: str) -> Value:
        """What rows hold under a name."""
        raise NotImplementedError

    def kept(self, made: Made, name: str) -> Value:
        """What an object keeps under a name."""
        if name in fields(made.kind) and name in made.init.given:
            return self.given(made.init, name)
        found: list[Value] = []
        for method in (m for m in made.kind.body if isinstance(m, FunctionNode)):
            if method.name == name:
                return Body(made.init.code, method, None, made)
            frame = made.init if method is made.init.scope else self.asked(method, made)
            found += [self.value(b, frame) for b in self.bindings(frame).get("self." + name, ())]
        return self.joined(found)

    def asked(self, method: ast.AST, made: Made) -> Frame:
        """The call of a method, where what made the object calls it."""
        raise NotImplementedError

    def runs(self, node: ast.AST, frame: Frame) -> bool | None:
        """Whether the conditions around a statement are known to hold, or not to, in this call; None elsewhere."""
        known, child = None, node
        for up in frame.code.above(node):
            if up is frame.scope:
                break
            if isinstance(up, ast.If) and child is not up.test:
                holds = self.holds(up.test, frame)
                if holds is not None and holds is not any(child is s for s in up.body):
                    return False
                known = known or (True if holds is not None else None)
            child = up
        return known

    def holds(self, test: ast.expr, frame: Frame) -> bool | None:
        """Whether a condition is true, where what the call is given says so."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.holds(test.operand, frame)
            return None if inner is None else not inner
        of = test.left if isinstance(test, ast.Compare) else test
        if not isinstance(of, ast.Attribute) and not (isinstance(of, ast.Name) and of.id in frame.given):
            return None
        value = self.given(frame, of.id) if isinstance(of, ast.Name) else self.of(of, frame)
        if not isinstance(test, ast.Compare):
            return bool(value.value) if isinstance(value, Said) else None
        wanted, op = test.comparators[0], test.ops[0]
        if not isinstance(wanted, ast.Constant) or value == NOTHING or not isinstance(
                op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            return None
        if not isinstance(value, Said) and wanted.value is not None:
            return None
        return (isinstance(value, Said) and value.value == wanted.value) is isinstance(op, (ast.Is, ast.Eq))


def extended(first: Seq, put: list[Set]) -> Seq:
    """A list with what is put behind its first values."""
    size = first.length or 0
    return Seq(lambda i: first.at(i) if i < size else put[i - size] if i < size + len(put) else NOTHING,
               size + len(put))


def invented(rows: Iterable[Rows]) -> list[tuple[Any, ...]]:
    """The sources that code draws: around which call, of how many, and where."""
    return [r.source for r in rows if isinstance(r.source, tuple) and r.source[0] == "invented"]


def merged(rows: Set) -> Set:
    """Rows that are drawn beside each other are one source, the first of them: inputs, their noise, their targets."""
    drawn = sorted(invented(rows), key=lambda s: s[2], reverse=True) if len(rows) > 1 else []
    first = {s[1]: s for s in drawn}
    return frozenset(replace(r, source=first[s[0][1]]) if (s := invented([r])) else r for r in rows) if drawn else rows


def fields(kind: ast.ClassDef) -> list[str]:
    """The fields that a class declares."""
    return [s.target.id for s in kind.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]


def targets(target: ast.expr, path: tuple[int, ...] = ()) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names of a target, each with its place in what is unpacked."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for i, inner in enumerate(target.elts):
            yield from targets(inner.value if isinstance(inner, ast.Starred) else inner, (*path, i))
    elif isinstance(target, ast.Name):
        yield target.id, path
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        yield "self." + target.attr, path


def results(body: ast.AST) -> Iterator[ast.expr]:
    """What a function returns or yields."""
    if isinstance(body, (*FunctionNode, ast.Lambda)):
        yield from returned(body)
    yield from (n.value for n in below(body) if isinstance(n, ast.Yield) and n.value is not None)


_FORMS: tuple[tuple[type[ast.AST], str, str], ...] = (
    (ast.Assign, "targets", "value"), (ast.AnnAssign, "target", "value"),
    (ast.AugAssign, "target", "value"), (ast.For, "target", "iter"), (ast.NamedExpr, "target", "value"),
    (ast.withitem, "optional_vars", "context_expr"))
_GROWS = frozenset({"append", "extend", "add", "update"})


def _own_nodes(top: ast.AST) -> Iterator[ast.AST]:
    """What is below a statement without the functions that it defines, in the order of `ast.walk`."""
    queue = [top]
    for node in queue:
        if not isinstance(node, FunctionNode):
            yield node
            queue += children(node)


def _bindings(code: Syntax, scope: ast.AST) -> dict[str, list[Binding]]:
    found: dict[str, list[Binding]] = {}
    body = scope.body if isinstance(scope, (*FunctionNode, ast.Module)) else ()
    for node in (n for s in body for n in _own_nodes(s)):
        form = next((f for f in _FORMS if isinstance(node, f[0])), None)
        of, value = (getattr(node, form[1]), getattr(node, form[2])) if form is not None else (None, None)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS:
            of, value = node.func.value, node.args[0] if node.args else None
        if of is None or not isinstance(value, ast.expr):
            continue
        for target in of if isinstance(of, list) else [of]:
            adds = not isinstance(node, (ast.Assign, ast.AnnAssign, ast.For, ast.NamedExpr, ast.withitem))
            while isinstance(target, ast.Subscript):
                target, adds = target.value, True
            for name, path in targets(target):
                line = getattr(node, "lineno", 0) or value.lineno
                found.setdefault(name, []).append(Binding(node, value, path, isinstance(node, ast.For), adds, line))
    return {name: sorted(those, key=lambda b: b.line) for name, those in found.items()}
