"""Where the rows of a value come from: the source, which part of it, and what was done to all rows on the way.

A value is followed backwards from where it is used, through the calls around that place, to the files, arguments and
draws that it is made of. Each `Rows` is a source and the steps that lead from it: a part is taken ("cut", by the slice,
mask, split or order that `by` names), rows are copied, something is fitted on rows and applied, windows overlap, labels
choose columns. Two uses share what the steps have in common; rows of one source are apart from where one cut has two
parts. What is not followed has no rows: nothing is said of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.nodes import argument, last_name, parameters, written
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax
from traindx_tools.program.moments import Spot
from traindx_tools.program.rows import Rows, Step

_ROWS = {k: frozenset(v) for k, v in table("rows.toml").items()}
_MOST, _DEEP = 6_000, 24
_WORDS = (("train", re.compile(r"train|(^|[^a-z])(trn|tr|fit)([^a-z]|$)", re.I)),
          ("val", re.compile(r"val|(^|[^a-z])dev([^a-z]|$)", re.I)), ("test", re.compile(r"test|hold_?out", re.I)))
_KEPT = frozenset({"values", "T", "data", "iloc", "loc", "tensors", "dataset", "at"})
Key = tuple[Hashable, ...]


Set = frozenset[Rows]
NOTHING: Set = frozenset()


@dataclass(eq=False)
class Seq:
    """Values by their number."""

    at: Callable[[int], Value]
    length: int | None = None

    def all(self) -> list[Value]:
        return [self.at(i) for i in range(3 if self.length is None else min(self.length, 6))]


@dataclass(eq=False)
class Named:
    """Values by their name."""

    get: Callable[[object], Value]
    names: tuple[object, ...] = ()


@dataclass(eq=False)
class Made:
    """An object of a class of the project."""

    code: Syntax
    kind: ast.ClassDef
    init: Frame
    noise: Step | None = None


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
    """One call: what its names are given, and by which calls it was reached (`key`)."""

    code: Syntax
    scope: ast.AST
    given: dict[str, Callable[[], Value]]
    up: Frame | None = None
    owner: Made | None = None
    key: Key = ()


def word(text: str) -> str:
    """"train", "val" or "test", where a text says one of them."""
    said = [w for w, pattern in _WORDS if pattern.search(text)]
    return said[0] if len(said) == 1 else ""


def _spot(code: Syntax, node: ast.AST) -> Spot:
    at = code.place(node)
    return Spot(at.file or "", at.line or 1, at.end_line, at.quote or "", at.module)


class Origins:
    """Follows values backwards. Each answer is kept; a value that leads back to itself adds nothing."""

    def __init__(self, look: Lookup) -> None:
        self.look, self.left = look, _MOST
        self._known: dict[tuple[int, Key], Value] = {}
        self._open: set[tuple[int, Key]] = set()
        self._bound: dict[int, dict[str, list[_Binding]]] = {}
        self._trains: dict[int, bool] = {}

    def rows(self, node: ast.expr, frame: Frame) -> Set:
        """The rows that an expression is made of."""
        return self.flat(self.of(node, frame))

    def used(self, node: ast.expr, frame: Frame, loader: str) -> Set:
        """The rows of an expression, of one of its loaders where it is a module of data."""
        value = self.of(node, frame)
        method = self.attribute(value, loader) if isinstance(value, Made) and loader else NOTHING
        if isinstance(method, Body) and isinstance(value, Made):
            inner = Frame(method.code, method.node, {}, owner=value, key=(*value.init.key, id(method.node)))
            return self._union(list(_results(method.node)), inner)
        return self.flat(value)

    def of(self, node: ast.AST, frame: Frame) -> Value:
        """The value of an expression."""
        key = id(node), frame.key
        if key in self._known:
            return self._known[key]
        if key in self._open or self.left <= 0 or len(frame.key) > _DEEP:
            return NOTHING
        self.left -= 1
        self._open.add(key)
        handler = _HANDLERS.get(type(node))
        found = handler(self, node, frame) if handler is not None else self._union(ast.iter_child_nodes(node), frame)
        self._open.discard(key)
        self._known[key] = found
        return found

    def flat(self, value: Value, left: int = 4) -> Set:
        """All rows of a value, of what it holds as well."""
        if isinstance(value, frozenset):
            return value
        if isinstance(value, Seq) and left:
            return frozenset().union(*(self.flat(v, left - 1) for v in value.all()))
        if isinstance(value, Named) and left:
            return frozenset().union(*(self.flat(value.get(n), left - 1) for n in value.names))
        if isinstance(value, Made) and left:
            return self._fetched(value)
        return NOTHING

    def _union(self, nodes: Iterator[ast.AST] | list[ast.expr], frame: Frame) -> Set:
        return frozenset().union(*(self.flat(self.of(n, frame)) for n in nodes if isinstance(n, ast.expr)))

    # names

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        at: Frame | None = frame
        if node.id == "self" and frame.owner is not None:
            return frame.owner
        for up in frame.code.above(node) if node.id not in frame.given else ():
            for over in getattr(up, "generators", ()):
                for name, path in _targets(over.target):
                    if name == node.id and not any(n is node for n in ast.walk(over.iter)):
                        return self._along(self._element(self.of(over.iter, frame)), path)
            if isinstance(up, FunctionNode):
                break
        while at is not None:
            bound = self._bindings(at).get(node.id, [])
            if bound:
                reached, certain = _reaching(at.code, bound, node, at.scope)
                values = [self._value(b, at) for b in reached]
                if not certain and node.id in at.given:
                    values.append(at.given[node.id]())
                if len(values) == 1:
                    return values[0]
                first = next((v for v in values if not isinstance(v, (frozenset, Said))), None)
                return first if first is not None else frozenset().union(*map(self.flat, values))
            if node.id in at.given:
                return at.given[node.id]()
            if at.up is None and not isinstance(at.scope, ast.Module):
                at = Frame(at.code, at.code.file.tree, {}, key=())
                continue
            at = at.up
        inner = [n for n in below(frame.scope) if isinstance(n, FunctionNode) and n.name == node.id]
        found = self.look.function(frame.code, node)
        if inner or found is not None:
            code, body = (frame.code, inner[0]) if inner else found or (frame.code, node)
            return Body(code, body, frame if inner else None)
        return NOTHING

    def _bindings(self, frame: Frame) -> dict[str, list[_Binding]]:
        if id(frame.scope) not in self._bound:
            self._bound[id(frame.scope)] = dict(_bindings_in(frame.code, frame.scope))
        return self._bound[id(frame.scope)]

    def _value(self, bound: _Binding, frame: Frame) -> Value:
        value = self.of(bound.value, frame)
        if bound.turn:
            value = self._element(value)
        for at in bound.path:
            value = self._item(value, at)
        return value

    def _item(self, value: Value, at: int) -> Value:
        if isinstance(value, Seq):
            return value.at(at)
        if isinstance(value, Made):
            return self._field(value, at)
        return value

    def _element(self, value: Value) -> Value:
        """One turn of a loop over a value."""
        if isinstance(value, Seq):
            one = value.at(0)
            if value.length is None or not isinstance(one, frozenset):
                return one
            return frozenset().union(*map(self.flat, value.all()))
        return frozenset(replace(r, whole=False) for r in self.flat(value))

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id == "self" and frame.owner is not None:
            return self.attribute(frame.owner, node.attr)
        if node.attr in _ROWS["sizes"]:
            return NOTHING
        value = self.of(node.value, frame)
        if isinstance(value, Made):
            return self.attribute(value, node.attr)
        if isinstance(value, Named):
            return value.get(node.attr)
        return value if node.attr in _KEPT else frozenset(replace(r, column=node.attr) for r in self.flat(value))

    def attribute(self, made: Made, name: str) -> Value:
        """What an object keeps under a name."""
        fields = [s.target.id for s in made.kind.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
        if name in fields and name in made.init.given:
            return made.init.given[name]()
        found: list[Value] = []
        for method in (m for m in made.kind.body if isinstance(m, FunctionNode)):
            bound = self._bindings(Frame(made.code, method, {})).get("self." + name, [])
            if method.name == name:
                return Body(made.code, method, None, made)
            frame = made.init if method.name == "__init__" else Frame(made.code, method, {}, owner=made,
                                                                      key=(*made.init.key, id(method)))
            found += [self._value(b, frame) for b in bound]
        if len(found) == 1:
            return found[0]
        return frozenset().union(*map(self.flat, found))

    def _field(self, made: Made, at: int) -> Value:
        fields = [s.target.id for s in made.kind.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
        return self.attribute(made, fields[at]) if at < len(fields) else NOTHING

    def _fetched(self, made: Made) -> Set:
        """The rows of a data set: what fetching one of them gives, or what it was made of."""
        method = next((m for m in made.kind.body if isinstance(m, FunctionNode)
                       and m.name in ("__getitem__", "__iter__")), None)
        if method is None:
            return frozenset().union(*(self.flat(g()) for g in made.init.given.values()))
        inner = Frame(made.code, method, {}, owner=made, key=(*made.init.key, id(method)))
        found = frozenset().union(*(self.flat(self.of(r, inner)) for r in _results(method)))
        window = self._overlap(made, method)
        found = frozenset(replace(r, whole=True) for r in found if not r.what)
        if not found:
            given = frozenset().union(*(self.flat(g()) for g in made.init.given.values()))
            found = given or frozenset({Rows(("made", made.kind.name, made.init.key))})
        return frozenset(r.then(*(s for s in (window, made.noise) if s is not None)) for r in found)

    def _overlap(self, made: Made, method: ast.AST) -> Step | None:
        """Whether fetching takes windows that begin less than their length after each other."""
        for node in below(method):
            bounds = node.slice if isinstance(node, ast.Subscript) else None
            if not isinstance(bounds, ast.Slice) or bounds.lower is None or not isinstance(bounds.upper, ast.BinOp):
                continue
            width = bounds.upper.right if written(bounds.upper.left) == written(bounds.lower) else None
            start = bounds.lower
            while isinstance(start, ast.Name) and (step := made.code.assigned(start)) is not None:
                start = step
            hop: ast.expr | None = None
            if isinstance(start, ast.BinOp) and isinstance(start.op, ast.Mult):
                hop = start.right if isinstance(start.left, ast.Name) else start.left
            elif isinstance(start, ast.Subscript):
                ranges = [n for n in below(made.kind) if isinstance(n, ast.Call) and last_name(n.func) in (
                    "range", "arange") and any(isinstance(s, ast.Attribute) and s.attr == last_name(start.value)
                                               for t in getattr(made.code.statement(n), "targets", ()) for s in [t])]
                hop = (ranges[0].args[2] if len(ranges[0].args) > 2 else ast.Constant(1)) if ranges else None
            elif isinstance(start, ast.Name) and start.id in parameters(method):  # type: ignore[arg-type]
                hop = ast.Constant(1)
            sizes = [self._number(n, made) for n in (width, hop)]
            if sizes[0] is not None and sizes[1] is not None and sizes[1] < sizes[0]:
                return Step("windows", (sizes[0], sizes[1]), at=_spot(made.code, node))
        return None

    def _number(self, node: ast.expr | None, made: Made) -> float | None:
        known = made.code.number(node)
        if known is not None or node is None:
            return known
        name = last_name(node)
        value: Value = self.attribute(made, name) if isinstance(node, ast.Attribute) else NOTHING
        said = value.value if isinstance(value, Said) else None
        return float(said) if isinstance(said, (int, float)) else None

    # parts

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        base, at = self.of(node.value, frame), node.slice
        if isinstance(at, ast.Tuple) and at.elts:
            last, rows = at.elts[-1], self.flat(base)
            told = {(r.source, r.column) for r in rows}
            ranked = frozenset(r for r in self.rows(last, frame) if r.what == "ranking")
            if any((r.source, r.column) not in told for r in ranked):
                step = Step("labels", _bare(ranked), at=_spot(frame.code, node))
                return frozenset(r.then(step) for r in rows)
            base = frozenset(replace(r, column=r.column or written(last)) for r in rows) if rows else base
            at = at.elts[0]
        index = self.of(at, frame) if not isinstance(at, ast.Slice) else NOTHING
        if isinstance(base, Named):
            return base.get(index.value if isinstance(index, Said) else None)
        if isinstance(base, Seq) and isinstance(index, Said) and isinstance(index.value, int):
            return base.at(index.value if index.value >= 0 or base.length is None else base.length + index.value)
        if isinstance(base, Made) and isinstance(index, Said) and isinstance(index.value, int):
            return self._field(base, index.value)
        return self.taken(self.flat(base), at, index, frame)

    def taken(self, base: Set, at: ast.expr, index: Value, frame: Frame) -> Set:
        """`base[at]`: the rows that an index takes."""
        if isinstance(index, Said):
            part = word(str(index.value)) if isinstance(index.value, str) else ""
            if not part:
                return frozenset(replace(r, column=index.value) if isinstance(index.value, str) else replace(
                    r, whole=False) for r in base)
            return frozenset(r.then(Step("cut", "name", part, False, _spot(frame.code, at))) for r in base)
        if isinstance(at, ast.Slice):
            return self._sliced(base, at, frame)
        numbered = any(r.what == "numbering" for r in base)
        numbers = self.flat(index)
        if numbered:
            on = _bare(base)
            made = next(r.made for r in base if r.what)
            return frozenset(r.then(Step("fitted", on, "numbering", at=made)) for r in numbers if not r.what)
        if numbers and all(r.source[0] == "order" for r in numbers if isinstance(r.source, tuple)):
            found: set[Rows] = set()
            for number in numbers:
                cut = [Step("cut", number.source, number.cuts, number.cuts[-1].parted, number.cuts[-1].at)] if (
                    number.cuts) else []
                extra = [s for s in number.steps if s.kind != "cut"]
                found |= {replace(r.then(*extra, *cut), whole=r.whole and number.whole) for r in base}
            return frozenset(found)
        if _is_mask(at, frame, self):
            inverted = isinstance(at, ast.UnaryOp)
            text = written(at.operand if isinstance(at, ast.UnaryOp) else at)
            return frozenset(r.then(Step("cut", ("mask", text, frame.key), not inverted, False, _spot(frame.code, at))) for r in base)
        if isinstance(index, Seq):
            return base
        return frozenset(replace(r, whole=False) for r in base)

    def _sliced(self, base: Set, at: ast.Slice, frame: Frame) -> Set:
        ends = [e for e in (at.lower, at.upper) if e is not None]
        small = all(abs(n) <= 1 for n in map(frame.code.number, ends) if n is not None) and all(
            frame.code.number(e) is not None for e in ends)
        if not ends or small or at.step is not None:
            return base
        names = {n.id for e in ends for n in ast.walk(e) if isinstance(n, ast.Name)}
        own = getattr(frame.scope, "name", "") == "__getitem__"
        if own or any(b.turn for n in names for b in self._bindings(frame).get(n, ())) or any(
                n in frame.given for n in names if not isinstance(frame.scope, FunctionNode)) or _turns(frame, names, at):
            return frozenset(replace(r, whole=False) for r in base)
        part = written(at.lower) if at.lower else "", written(at.upper) if at.upper else "", frame.key
        parted = frame.code.parent(at) is not None and _is_parted(frame.code, at)
        return frozenset(r.then(Step("cut", "slice", part, parted, _spot(frame.code, at))) for r in base)

    def _parted(self, node: ast.Call, whole: Value, frame: Frame) -> Seq:
        by = "drawn" if last_name(node.func) == "random_split" else "split", id(node), frame.key
        return Seq(lambda i: frozenset(r.then(Step("cut", by, i, True, _spot(frame.code, node))) for r in self.flat(whole)))

    # what holds values

    def _display(self, node: ast.Tuple | ast.List, frame: Frame) -> Value:
        items = node.elts
        return Seq(lambda i: self.of(items[i], frame) if i < len(items) else NOTHING, len(items))

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        pairs = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)}
        return Named(lambda n: self.of(pairs[n], frame) if n in pairs else NOTHING, tuple(pairs))

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp, frame: Frame) -> Value:
        over = node.generators[0]
        subject = self.of(over.iter, frame)
        numbering = isinstance(node, ast.DictComp) and "enumerate(" in written(over.iter)
        if numbering and not isinstance(subject, Seq):
            return frozenset(replace(r, what="numbering", made=_spot(frame.code, node)) for r in self.flat(subject)
                             if not r.what)

        def turn(item: Value, at: Hashable) -> Value:
            given: dict[str, Callable[[], Value]] = {}
            for name, path in _targets(over.target):
                given[name] = lambda path=path: self._along(item, path)  # type: ignore[misc]
            inner = Frame(frame.code, frame.scope, given, frame, frame.owner, (*frame.key, (id(node), at)))
            inner.scope = node  # its own names
            for more in node.generators[1:]:
                for name, path in _targets(more.target):
                    given[name] = lambda m=more, p=path: self._along(self._element(self.of(m.iter, inner)), p)  # type: ignore[misc]
            return self.of(node.value if isinstance(node, ast.DictComp) else node.elt, inner)

        if isinstance(subject, Seq):
            if isinstance(node, ast.DictComp):
                words = [v.value for v in subject.all() if isinstance(v, Said)]
                return Named(lambda n: turn(Said(n), n) if n in words else NOTHING, tuple(words))
            return Seq(lambda i: turn(subject.at(i), i), subject.length)
        return self.flat(turn(self._element(subject), "turn"))

    def _along(self, value: Value, path: tuple[int, ...]) -> Value:
        for at in path:
            value = self._item(value, at)
        return value

    # arithmetic

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.of(node.left, frame), self.of(node.right, frame)
        if isinstance(left, Said) or isinstance(right, Said):
            texts = [v.value if isinstance(v, Said) else written(n) for v, n in ((left, node.left), (right, node.right))]
            if any(isinstance(t, str) and isinstance(v, Said) for t, v in zip(texts, (left, right), strict=True)):
                return Said("/".join(map(str, texts)))
        one, other = self.flat(left), self.flat(right)
        if isinstance(node.op, (ast.Sub, ast.Div)) and (on := _statistics(other)):
            step = Step("fitted", on, "statistic", at=next(r.made for r in other if r.what == "statistic"))
            return frozenset(r if r.what or any(s.kind == "fitted" and s.by == on for s in r.steps) or not r.whole
                             else r.then(step) for r in one)
        return one | other

    def _formatted(self, node: ast.JoinedStr, frame: Frame) -> Value:
        texts: list[str] = []
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            value = self.of(inner, frame)
            texts.append(str(value.value) if isinstance(value, Said) else "{" + written(inner) + "}")
        rows = self._union([p.value for p in node.values if isinstance(p, ast.FormattedValue)], frame)
        return rows or Said("".join(texts))

    # calls

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        name, func = last_name(node.func), node.func
        owner = self.of(func.value, frame) if isinstance(func, ast.Attribute) else NOTHING
        made = self._of_project(node, owner, name, frame)
        if made is not None:
            return made
        given = [a.value if isinstance(a, ast.Starred) else a for a in node.args]
        first = given[0] if given else node.keywords[0].value if node.keywords else None
        if name in _ROWS["sizes"]:
            return NOTHING
        if name in ("str", "Path", "list", "tuple", "iter", "sorted", "reversed", "tqdm", "jnp", "asarray") and (
                first is not None) and not isinstance(owner, Made):
            return self.of(first, frame)
        if name == "zip":
            items = [self.of(a, frame) for a in given]
            if len(node.args) == 1 and isinstance(node.args[0], ast.Starred):
                return self.flat(items[0])
            return _zipped(self, items)
        if name == "enumerate" and first is not None:
            value = self.of(first, frame)
            return Seq(lambda i: NOTHING if i == 0 else self._element(value), 2) if isinstance(value, Seq) else value
        if name in _ROWS["pairs"]:
            by = "drawn", id(node), frame.key
            return Seq(lambda i: frozenset(r.then(Step("cut", by, i % 2, True, _spot(frame.code, node))) for r in self.rows(
                given[i // 2], frame)) if i // 2 < len(given) else NOTHING, 2 * len(given))
        if name in _ROWS["parts"] and first is not None and not isinstance(self.of(first, frame), Said):
            library = isinstance(func, ast.Name) or frame.code.qualified(func)
            whole = self.of(first, frame) if library else owner
            made_by = frame.code.origin(func.value) if isinstance(func, ast.Attribute) else func
            if last_name(getattr(made_by, "func", None)) in _ROWS["folds"]:
                by = "split", id(node), frame.key
                order = Rows(("order", *by))
                return Seq(lambda _: Seq(lambda i: frozenset({order.then(Step("cut", by, i, True, _spot(frame.code, node)))}), 2))
            return self._parted(node, whole, frame)
        if name in _ROWS["taken"]:
            numbers = given[-1] if given else None
            whole = self.flat(self.of(given[0], frame) if len(given) > 1 else owner)
            return self.taken(whole, numbers, self.of(numbers, frame), frame) if numbers is not None else whole
        if name in _ROWS["rests"] and len(given) > 1:
            cuts = [r.cuts[-1] for r in self.rows(given[1], frame) if r.cuts]
            return frozenset(r.then(Step("cut", c.by, ("rest", c.part), True, c.at)) for r in self.rows(given[0], frame)
                             for c in cuts[:1]) or self.rows(given[0], frame)
        if name in _ROWS["drawn"] or name in _ROWS["counted"]:
            rows = self.rows(first, frame) if first is not None else NOTHING
            fixed = name in _ROWS["counted"] or self._is_seeded(node, frame)
            key = ("order", written(node)) if fixed else ("order", id(node), frame.key)
            return rows or frozenset({Rows(key)})
        if name in _ROWS["joins"] or name in _ROWS["copies"] or (
                name == "sample" and argument(node, 99, "replace") is not None) or (
                name in ("repeat", "resample") and argument(node, 99, "axis", "replace") is not None):
            return self._joined(node, name, owner, given, frame)
        if name in _ROWS["statistics"]:
            axis = argument(node, 1 if frame.code.qualified(func) else 0, "axis", "dim")
            over = owner if self.flat(owner) else self.of(first, frame) if first is not None else NOTHING
            if frame.code.number(axis) == 0 or (axis is None and name != "sum"):
                at = _spot(frame.code, node)
                return frozenset(replace(r, what="statistic", made=at) if r.whole and not r.what else r for r in self.flat(over))
            return self.flat(over)
        if name in ("fit", "fit_transform", "transform"):
            fitted = self._fitted(node, name, given, frame)
            if fitted is not None:
                return fitted
        if name in _ROWS["ranks"]:
            rows = self._union(node.args, frame) | self.flat(owner)
            statistics = {r for r in rows if r.what}
            return frozenset(replace(r, what="ranking") for r in statistics) or rows
        rows = self._union([*given, *(k.value for k in node.keywords)], frame) | self.flat(owner)
        if name == "get" and any(r.what == "numbering" for r in self.flat(owner)) and first is not None:
            return self.taken(self.flat(owner), first, self.of(first, frame), frame)
        if not rows and name in _ROWS["reads"]:
            said = [self.of(a, frame) for a in given]
            text = " ".join(str(v.value) if isinstance(v, Said) else written(a) for v, a in zip(said, given, strict=True))
            more = " ".join(f"{k.arg}={written(k.value)}" for k in node.keywords if k.arg in ("split", "train", "subset"))
            owned = str(owner.value) if isinstance(owner, Said) else ""
            return frozenset({Rows(("read", f"{owned} {text} {more}".strip(), name))})
        return rows

    def _joined(self, node: ast.Call, name: str, owner: Value, given: list[ast.expr], frame: Frame) -> Set:
        rows = self._union([*given], frame) | self.flat(owner)
        axis = argument(node, 1, "axis", "dim")
        copied = name not in _ROWS["joins"]
        if not copied and (axis is None or frame.code.number(axis) == 0) and given and isinstance(
                given[0], (ast.List, ast.Tuple)):
            sets = [self.rows(e, frame) for e in given[0].elts]
            copied = any(r in other for i, one in enumerate(sets) for r in one if r.whole for other in sets[i + 1:])
        replaced = argument(node, 99, "replace")
        if name in ("sample", "resample") and not (isinstance(replaced, ast.Constant) and replaced.value is True):
            return rows
        step = Step("copied", at=_spot(frame.code, node))
        return frozenset(r.then(step) if copied and r.whole else r for r in rows)

    def _fitted(self, node: ast.Call, name: str, given: list[ast.expr], frame: Frame) -> Value | None:
        """What a scaler of a library gives; None where it is none."""
        owner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        made = frame.code.origin(owner)
        while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "fit":
            made = made.func.value
        kind = last_name(made.func) if isinstance(made, ast.Call) else ""
        chooses = kind in _ROWS["choosers"]
        if not given or not (chooses or any(w in kind for w in _ROWS["fitted"])):
            return None
        on: Set = NOTHING
        for call in frame.code.calls("fit", "fit_transform"):
            if isinstance(call.func, ast.Attribute) and written(call.func.value) == written(owner) and call.args and (
                    frame.code.scope(call) is frame.code.scope(node)):
                on |= frozenset(r for r in self.rows(call.args[0], frame) if not r.what)
        if name == "fit_transform":
            on = frozenset(r for r in self.rows(given[0], frame) if not r.what)
        step = Step("labels" if chooses else "fitted", _bare(on), kind, at=_spot(frame.code, node))
        return frozenset(r.then(step) for r in self.rows(given[0], frame)) if name != "fit" else NOTHING

    def _is_seeded(self, node: ast.Call, frame: Frame) -> bool:
        """Whether each call of the function around draws the same: its generator is made there, from a seed."""
        generator = argument(node, 99, "generator") or (node.func.value if isinstance(node.func, ast.Attribute) else None)
        made = frame.code.origin(generator) if generator is not None else None
        inside = isinstance(made, ast.Call) and frame.code.scope(made) is frame.code.scope(node) and (
            bool(made.args or made.keywords) and not isinstance(frame.scope, ast.Module))
        return inside or any(frame.code.scope(c) is frame.code.scope(node) and c.lineno < node.lineno
                             for c in frame.code.calls("seed", "manual_seed"))

    def _of_project(self, node: ast.Call, owner: Value, name: str, frame: Frame) -> Value | None:
        """What a function or class of the project gives; None where the call is of a library."""
        callee: Value = NOTHING
        if isinstance(owner, Made):
            callee = self.attribute(owner, name)
        elif isinstance(node.func, ast.Name):
            callee = self._name(node.func, frame)
            kinds = self.look.classes.get(name, [])
            if not isinstance(callee, Body) and len(kinds) == 1:
                return self.made(*kinds[0], node, frame)
        elif isinstance(node.func, ast.Attribute) and name in self.look.functions and not frame.code.qualified(node.func):
            found = self.look.function(frame.code, node.func)
            callee = Body(*found, None) if found is not None and frame.code.owner(found[1]) is None else NOTHING
        if not isinstance(callee, Body):
            return None
        body = callee.node
        if len(frame.key) > 12 or self.trains(callee.code, body):
            return NOTHING
        inner = self.entered(callee, node, frame)
        results = list(_results(body))
        yields = any(isinstance(n, ast.Yield) for n in below(body))
        values = [self.of(r, inner) for r in results]
        values = [v for v in values if not (isinstance(v, Said) and v.value is None)]
        noise = self._left_on(callee.code, body, body, node, frame)
        if noise is not None:
            return frozenset(r.then(noise) for v in values for r in self.flat(v))
        if callee.owner is not None and any(isinstance(r, ast.Name) and r.id == "self" for r in results):
            return callee.owner
        if yields:
            return Seq(lambda i: values[min(i, len(values) - 1)], None) if values else NOTHING
        return values[0] if len(values) == 1 else frozenset().union(*map(self.flat, values))

    def entered(self, callee: Body, node: ast.Call, frame: Frame) -> Frame:
        """The frame of a call."""
        given: dict[str, Callable[[], Value]] = {}
        names = list(parameters(callee.node))  # type: ignore[arg-type]
        if callee.owner is not None and names and names[0] in ("self", "cls"):
            names = names[1:]
        for at, arg in enumerate(node.args):
            if isinstance(arg, ast.Starred):
                for i, name in enumerate(names[at:]):
                    given[name] = lambda a=arg, i=i: self._item(self.of(a.value, frame), i)  # type: ignore[misc]
                break
            if at < len(names):
                given[names[at]] = lambda a=arg: self.of(a, frame)  # type: ignore[misc]
        for keyword in node.keywords:
            if keyword.arg is not None:
                given[keyword.arg] = lambda k=keyword: self.of(k.value, frame)  # type: ignore[misc]
        outer = callee.around or Frame(callee.code, callee.code.file.tree, {})
        for name, default in parameters(callee.node).items():  # type: ignore[arg-type]
            if name not in given and default is not None:
                given[name] = lambda d=default: self.of(d, outer)  # type: ignore[misc]
        return Frame(callee.code, callee.node, given, callee.around, callee.owner, (*frame.key, id(node)))

    def made(self, code: Syntax, kind: ast.ClassDef, node: ast.Call, frame: Frame) -> Value:
        """An object of a class of the project."""
        init = next((m for m in kind.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
        fields = [s.target.id for s in kind.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
        key = (*frame.key, id(node))
        if init is None:
            given: dict[str, Callable[[], Value]] = {
                n: (lambda a=a: self.of(a, frame)) for n, a in zip(fields, node.args, strict=False)}  # type: ignore[misc]
            given |= {k.arg: (lambda k=k: self.of(k.value, frame)) for k in node.keywords if k.arg}  # type: ignore[misc]
            return Made(code, kind, Frame(code, kind, given, key=key))
        found = Made(code, kind, Frame(code, kind, {}, key=key), self._left_on(code, init, kind, node, frame))
        found.init = self.entered(Body(code, init, None, found), node, frame)
        return found

    def _left_on(self, code: Syntax, body: ast.AST, around: ast.AST, call: ast.Call, frame: Frame) -> Step | None:
        """A switch that a call leaves at its default, which is on, and under which rows are changed at random."""
        spec = [(i, n, d) for i, (n, d) in enumerate(parameters(body).items())]  # type: ignore[arg-type]
        for i, name, default in spec:
            given = argument(call, i - (body is not around), name)
            if given is None and isinstance(default, ast.Constant) and default.value is True and not any(
                    k.arg is None for k in call.keywords):
                for node in below(around):
                    if isinstance(node, (ast.If, ast.IfExp)) and last_name(node.test) == name:
                        inside = node.body if isinstance(node.body, list) else [node.body]
                        if any(self._draws(code, c) for s in inside for c in below(s) if isinstance(c, ast.Call)):
                            return Step("noise", (id(body), name), name, at=_spot(frame.code, call))
        return None

    def _draws(self, code: Syntax, call: ast.Call, left: int = 2) -> bool:
        whole = code.qualified(call.func)
        found = self.look.functions.get(last_name(call.func), []) if left else []
        return _DRAWS.match(whole) is not None or (len(found) == 1 and any(
            self._draws(found[0][0], c, left - 1) for c in below(found[0][1]) if isinstance(c, ast.Call)))

    def trains(self, code: Syntax, body: ast.AST, left: int = 4) -> bool:
        """Whether a function makes steps of training: what it gives is a state, and no rows."""
        if id(body) not in self._trains:
            self._trains[id(body)] = False
            names = {last_name(c.func) for c in below(body) if isinstance(c, ast.Call)}
            self._trains[id(body)] = bool(names & _LEARNS) or (left > 0 and any(
                self.trains(*found[0], left - 1) for n in names if len(found := self.look.functions.get(n, [])) == 1))
        return self._trains[id(body)]


_DRAWS = re.compile(r"(jax\.random|numpy\.random|random|torch\.rand|torch\.bernoulli|torch\.normal)")
_LEARNS = frozenset({"backward", "apply_updates", "apply_gradients", "value_and_grad", "filter_value_and_grad",
                     "filter_grad"})


def _zipped(origins: Origins, items: list[Value]) -> Value:
    if any(isinstance(i, Seq) for i in items):
        return Seq(lambda i: Seq(lambda j: origins._item(items[j], i) if j < len(items) else NOTHING, len(items)))
    return Seq(lambda _: Seq(lambda j: origins._element(items[j]) if j < len(items) else NOTHING, len(items)))


def _turns(frame: Frame, names: set[str], at: ast.AST) -> bool:
    """Whether a name is that of a comprehension around it, or is itself made of one that changes in a loop."""
    over = [t for up in frame.code.above(at) for g in getattr(up, "generators", ()) for t, _ in _targets(g.target)]
    return bool(names & set(over))


def _is_parted(code: Syntax, at: ast.Slice) -> bool:
    """Whether another slice of the same value begins where this one ends, or ends where it begins."""
    base = written(code.parent(at).value)  # type: ignore[union-attr]
    mine = written(at.lower), written(at.upper)
    for other in code.inside(code.scope(at), ast.Subscript):
        taken = other.slice
        if taken is not at and isinstance(taken, ast.Slice) and written(other.value) == base:
            if (mine[1] and written(taken.lower) == mine[1]) or (mine[0] and written(taken.upper) == mine[0]):
                return True
    return False


def _bare(rows: Iterable[Rows]) -> Hashable:
    return frozenset(r.bare for r in rows)


def _statistics(rows: Set) -> Hashable:
    return _bare(r for r in rows if r.what == "statistic")


def _is_mask(node: ast.expr, frame: Frame, origins: Origins) -> bool:
    """Whether an index says of each row whether it is taken."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(node, ast.Compare) or last_name(node).endswith("mask"):
        return True
    text, name = written(frame.code.origin(node)), node
    for _ in range(4):
        if re.search(r"bool|mask|[<>]|==|isin", text):
            return True
        name = getattr(name, "value", name)
    return False


# bindings


@dataclass(frozen=True, eq=False)
class _Binding:
    """What a name is given. `turn`: it is one turn of a loop over the value; `adds`: it held something before."""

    at: ast.AST
    value: ast.expr
    path: tuple[int, ...] = ()
    turn: bool = False
    adds: bool = False


def _targets(target: ast.expr, path: tuple[int, ...] = ()) -> Iterator[tuple[str, tuple[int, ...]]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for i, inner in enumerate(target.elts):
            yield from _targets(inner.value if isinstance(inner, ast.Starred) else inner, (*path, i))
    elif isinstance(target, ast.Name):
        yield target.id, path
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        yield "self." + target.attr, path


def _bindings_in(code: Syntax, scope: ast.AST) -> Iterator[tuple[str, list[_Binding]]]:
    found: dict[str, list[_Binding]] = {}
    body = getattr(scope, "body", []) if not isinstance(scope, ast.Lambda) else []
    for node in (n for s in (body if isinstance(body, list) else []) for n in below(s)):
        if code.scope(node) is not scope and not (isinstance(scope, ast.ClassDef)):
            continue
        pairs: list[tuple[ast.expr, ast.expr, bool, bool]] = []
        if isinstance(node, ast.Assign):
            pairs = [(t, node.value, False, False) for t in node.targets]
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            pairs = [(node.target, node.value, False, isinstance(node, ast.AugAssign))]
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            pairs = [(node.target, node.iter, True, False)]
        elif isinstance(node, ast.NamedExpr):
            pairs = [(node.target, node.value, False, False)]
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            pairs = [(node.optional_vars, node.context_expr, False, False)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args and (
                node.func.attr in ("append", "extend", "add", "update")):
            pairs = [(node.func.value, node.args[0], False, True)]
        for target, value, turn, adds in pairs:
            while isinstance(target, ast.Subscript):
                target, adds = target.value, True
            for name, path in _targets(target):
                found.setdefault(name, []).append(_Binding(node, value, path, turn, adds))
    yield from found.items()


def _reaching(code: Syntax, bound: list[_Binding], use: ast.AST, scope: ast.AST) -> tuple[list[_Binding], bool]:
    """The bindings that may reach a use, and whether one of them certainly does."""
    if code.scope(use) is not scope:
        last = max((i for i, b in enumerate(bound) if not b.adds), default=0)
        return bound[last:], True
    here = code.statement(use)
    line = getattr(here, "lineno", 0)
    loops = {id(x) for x in code.loops(use)}
    before: list[_Binding] = []
    certain = False
    for one in sorted(bound, key=lambda b: getattr(b.at, "lineno", 0) or b.value.lineno):
        at = getattr(one.at, "lineno", 0) or one.value.lineno
        own = code.statement(one.value) is here and not (one.turn and use is not one.value and not any(
            n is use for n in ast.walk(one.value)))
        if at < line and not own or (one.turn and at <= line and not own):
            holder = code.parent(code.statement(one.value) or one.at)
            if not one.adds and holder is not None and (one.turn or any(a is holder for a in code.above(use))):
                before, certain = [], True
            before.append(one)
        elif loops & {id(x) for x in code.loops(one.at)}:
            before.append(one)
    return before, certain


def _results(body: ast.AST) -> Iterator[ast.expr]:
    """What a function returns or yields."""
    yield from returned(body)  # type: ignore[arg-type]
    yield from (n.value for n in below(body) if isinstance(n, ast.Yield) and n.value is not None)


_HANDLERS: dict[type[ast.AST], Callable[..., Value]] = {
    ast.Name: Origins._name, ast.Attribute: Origins._attribute, ast.Call: Origins._call,
    ast.Subscript: Origins._subscript, ast.Tuple: Origins._display, ast.List: Origins._display, ast.Dict: Origins._dict,
    ast.ListComp: Origins._comprehension, ast.GeneratorExp: Origins._comprehension,
    ast.DictComp: Origins._comprehension, ast.SetComp: Origins._comprehension, ast.BinOp: Origins._binary,
    ast.JoinedStr: Origins._formatted, ast.Constant: lambda _, node, frame: Said(node.value),
    ast.Starred: lambda o, node, frame: o.of(node.value, frame),
    ast.Lambda: lambda o, node, frame: Body(frame.code, node, frame),
}
