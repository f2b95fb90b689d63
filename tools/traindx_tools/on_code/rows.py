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
from collections.abc import Hashable, Iterable
from dataclasses import replace

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.nodes import last_name, written
from traindx_tools.on_code.row_names import (
    NOTHING,
    Frame,
    Made,
    Named,
    Names,
    Said,
    Seq,
    Set,
    Value,
    invented,
    results,
    targets,
)
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax
from traindx_tools.program.rows import Rows, Step

ROWS = {k: frozenset(v) for k, v in table("rows.toml").items()}
_WORDS = {"train": re.compile(r"train|(^|[^a-z])(trn|tr|fit)([^a-z]|$)", re.I),
          "val": re.compile(r"(?<!e)val(?!u)|(^|[^a-z])dev([^a-z]|$)", re.I),
          "test": re.compile(r"test|h[oe]ld[-_ ]?out", re.I)}


def word(text: str) -> str:
    """"train", "val" or "test", where a text says one of them."""
    said = [w for w, pattern in _WORDS.items() if pattern.search(text)]
    return said[0] if len(said) == 1 else ""


def bare(rows: Iterable[Rows]) -> Hashable:
    """Which rows something was taken of."""
    return frozenset(r.bare for r in rows)


class Parts(Names):
    """Adds what holds values, what takes parts of them, and arithmetic."""

    def __init__(self, look: Lookup) -> None:
        super().__init__(look)
        self.handlers |= {
            ast.Subscript: self._subscript, ast.Tuple: self._display, ast.List: self._display, ast.Dict: self._dict,
            ast.ListComp: self._comprehension, ast.GeneratorExp: self._comprehension, ast.SetComp: self._comprehension,
            ast.DictComp: self._comprehension, ast.BinOp: self._binary, ast.JoinedStr: self._formatted,
            ast.IfExp: self._either, ast.Starred: lambda node, frame: self.of(node.value, frame)}

    def column(self, value: Value, name: str) -> Value:
        """`table.name`; what says how many there are holds no rows."""
        if name in ROWS["sizes"]:
            return NOTHING
        return value if name in ROWS["same"] else frozenset(replace(r, column=name) for r in self.flat(value))

    def fetched(self, made: Made) -> Set:
        """The rows of a data set: what fetching one of them gives, or what it was made of."""
        given = NOTHING.union(*(self.flat(self.given(made.init, n)) for n in made.init.given))
        method = next((m for m in made.kind.body if isinstance(m, FunctionNode)
                       and m.name in ("__getitem__", "__iter__")), None)
        if method is None:
            return given
        inner = made.init.inside(method, made)
        found = frozenset(replace(r, whole=True) for r in self.union(results(method), inner) if not r.what)
        found = found or given or frozenset({Rows(("made", made.kind.name, made.init.key))})
        steps = [s for s in (self._overlap(made, inner), made.noise) if s is not None]
        return frozenset(r.then(*steps) for r in found)

    def _overlap(self, made: Made, inner: Frame) -> Step | None:
        """Whether fetching takes windows that begin less than their length after each other."""
        for node in below(inner.scope):
            ends = node.slice if isinstance(node, ast.Subscript) else None
            if not isinstance(ends, ast.Slice) or ends.lower is None or ends.upper is None:
                continue
            upper = inner.code.origin(ends.upper)
            if not isinstance(upper, ast.BinOp) or written(upper.left) != written(ends.lower):
                continue
            start, hop, frame = inner.code.origin(ends.lower), None, inner
            if isinstance(start, ast.BinOp) and isinstance(start.op, ast.Mult):
                hop = start.right if isinstance(start.left, ast.Name) else start.left
            elif isinstance(start, ast.Name):
                hop = ast.Constant(1)
            elif isinstance(start, ast.Subscript):
                made_by = inner.code.origin(start.value)
                hop = made_by.args[2] if isinstance(made_by, ast.Call) and len(made_by.args) > 2 else None
                frame = made.init
            width, step = (self._number(n, f) for n, f in ((upper.right, inner), (hop, frame)))
            if width and step and step < width:
                return Step("windows", (width, step), at=inner.spot(node))
        return None

    def _number(self, node: ast.expr | None, frame: Frame) -> float | None:
        value = self.of(node, frame) if node is not None else NOTHING
        said = value.value if isinstance(value, Said) else frame.code.number(node)
        return float(said) if isinstance(said, (int, float)) else None

    # parts

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        base, at = self.of(node.value, frame), node.slice
        if isinstance(at, ast.Tuple) and at.elts:
            rows, last = self.flat(base), at.elts[-1]
            ranked = frozenset(r for r in self.rows(last, frame) if r.what == "ranking")
            if {(r.source, r.column) for r in ranked} - {(r.source, r.column) for r in rows}:
                return frozenset(r.then(Step("labels", bare(ranked), at=frame.spot(node))) for r in rows)
            base = frozenset(replace(r, column=r.column or written(last)) for r in rows) or base
            at = at.elts[0]
        index = self.of(at, frame) if not isinstance(at, ast.Slice) else NOTHING
        said = index.value if isinstance(index, Said) else None
        if isinstance(base, Named):
            return base.get(said)
        if isinstance(base, Seq) and base.length is not None and isinstance(at, ast.Slice) and (
                at.upper is None and at.step is None and (begin := self._number(at.lower, frame)) is not None):
            of, skip = base.at, int(begin)
            return Seq(lambda i: of(i + skip), max(base.length - skip, 0)) if skip >= 0 else base
        if isinstance(base, (Seq, Made)) and isinstance(said, int):
            length = base.length if isinstance(base, Seq) else None
            return self.along(base, (said if said >= 0 or length is None else length + said,))
        return self.taken(self.flat(base), at, index, frame)

    def taken(self, base: Set, at: ast.expr, index: Value, frame: Frame) -> Set:
        """`base[at]`: the rows that an index takes."""
        if isinstance(at, ast.Slice):
            return self._sliced(base, at, frame)
        if isinstance(index, Said):
            part = word(index.value) if isinstance(index.value, str) else ""
            if part:
                return frozenset(r.then(Step("cut", ("name",), part, at=frame.spot(at))) for r in base)
            only = index.value == 0  # of a data set of one graph
            return frozenset(replace(r, column=index.value) if isinstance(index.value, str) else
                             replace(r, whole=r.whole and only) for r in base)
        numbers = self.flat(index)
        made = next((r.made for r in base if r.what == "numbering"), None)
        if made is not None:
            return frozenset(r.then(Step("fitted", bare(base), "numbering", at=made)) for r in numbers if not r.what)
        if numbers and all(isinstance(r.source, tuple) and r.source[0] == "order" for r in numbers):
            found: set[Rows] = set()
            for n in numbers:
                cut = [Step("cut", n.source, n.cuts, n.cuts[-1].parted, n.cuts[-1].at)] if n.cuts else []
                steps = [*(s for s in n.steps if s.kind != "cut"), *cut]
                found |= {replace(r.then(*steps), whole=r.whole and n.whole) for r in base}
            return frozenset(found)
        asked, held = ({s[1] for s in invented(rs)} for rs in (numbers, base))
        if asked and held and asked.isdisjoint(held) and not any(r.steps for r in numbers | base):
            return numbers  # a table of which each row looks up its own entry
        plain = at.operand if isinstance(at, ast.UnaryOp) else at
        if isinstance(plain, ast.Compare) or re.search(
                r"bool|mask|[<>]|==|isin", last_name(plain) + written(frame.code.origin(plain))):
            by = "mask", written(plain), frame.key
            return frozenset(r.then(Step("cut", by, plain is at, at=frame.spot(at))) for r in base)
        return base if isinstance(index, Seq) else frozenset(replace(r, whole=False) for r in base)

    def _sliced(self, base: Set, at: ast.Slice, frame: Frame) -> Set:
        ends = [e for e in (at.lower, at.upper) if e is not None]
        numbers = [frame.code.number(e) for e in ends]
        if at.step is not None or all(n is not None and abs(n) <= 1 for n in numbers):
            return base
        names = {n.id for e in ends for n in ast.walk(e) if isinstance(n, ast.Name)}
        over = [g.target for up in frame.code.above(at) for g in getattr(up, "generators", ())]
        turning = {name for target in over for name, _ in targets(target)}
        turns = [b.value for n in names for b in self.bindings(frame).get(n, ()) if b.turn]
        turns += [g.iter for up in frame.code.above(at) for g in getattr(up, "generators", ())]
        if getattr(frame.scope, "name", "") == "__getitem__" or names & turning or turns:
            slides = any(_slides(frame.code, at, over) for over in turns)
            steps = [Step("windows", written(at), at=frame.spot(at))] if slides else []
            return frozenset(replace(r, whole=False).then(*steps) for r in base)
        step = Step("cut", ("slice",), (written(at.lower), written(at.upper), frame.key), _is_parted(frame.code, at),
                    frame.spot(at))
        return frozenset(r if r.what else r.then(step) for r in base)

    # what holds values

    def _display(self, node: ast.Tuple | ast.List, frame: Frame) -> Value:
        return Seq(lambda i: self.of(node.elts[i], frame) if i < len(node.elts) else NOTHING, len(node.elts))

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        pairs = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)}
        return Named(lambda n: self.of(pairs[n], frame) if n in pairs else NOTHING, tuple(pairs))

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp, frame: Frame) -> Value:
        over = node.generators[0]
        subject = self.of(over.iter, frame)
        if isinstance(node, ast.DictComp) and "enumerate(" in written(over.iter) and not isinstance(subject, Seq):
            at = frame.spot(node)
            return frozenset(replace(r, what="numbering", made=at) for r in self.flat(subject) if not r.what)

        def turned(item: Value, at: Hashable) -> Value:
            inner = Frame(frame.code, node, up=frame, owner=frame.owner, key=(*frame.key, id(node), at))
            inner.given.update({name: self.along(item, path) for name, path in targets(over.target)})
            for more in node.generators[1:]:
                one = self.turn(self.of(more.iter, inner))
                inner.given.update({name: self.along(one, path) for name, path in targets(more.target)})
            return self.of(node.value if isinstance(node, ast.DictComp) else node.elt, inner)

        if not isinstance(subject, Seq):
            return self.flat(turned(self.turn(subject), "turn"))
        if isinstance(node, ast.DictComp):
            names = tuple(v.value for v in subject.all() if isinstance(v, Said))
            return Named(lambda n: turned(Said(n), n) if n in names else NOTHING, names)
        return Seq(lambda i: turned(subject.at(i), i), subject.length)

    # arithmetic and texts

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.of(node.left, frame), self.of(node.right, frame)
        if any(isinstance(v, Said) and isinstance(v.value, str) for v in (left, right)):
            return Said("/".join(str(v.value) if isinstance(v, Said) else written(n)
                                 for v, n in ((left, node.left), (right, node.right))))
        one, other = self.flat(left), self.flat(right)
        taken = [r for r in other if r.what == "statistic"]
        if isinstance(node.op, (ast.Sub, ast.Div)) and taken:
            step = Step("fitted", bare(taken), "statistic", at=taken[0].made, handed=taken[0].handed)
            return frozenset(r.then(step) if r.whole and not r.what else r for r in one)
        return one | other

    def _formatted(self, node: ast.JoinedStr, frame: Frame) -> Value:
        inner = [p.value if isinstance(p, ast.FormattedValue) else p for p in node.values]
        values = [self.of(n, frame) for n in inner]
        text = "".join(str(v.value) if isinstance(v, Said) else "{" + written(n) + "}"
                       for v, n in zip(values, inner, strict=True))
        return NOTHING.union(*map(self.flat, values)) or Said(text)

    def _either(self, node: ast.IfExp, frame: Frame) -> Value:
        holds = self.holds(node.test, frame)
        return self.union([node.body, node.orelse], frame) if holds is None else self.of(
            node.body if holds else node.orelse, frame)


def _slides(code: Syntax, at: ast.Slice, over: ast.expr) -> bool:
    """Whether `x[i : i + width]` moves on by less than its width in a loop over a range."""
    if not (isinstance(over, ast.Call) and last_name(over.func) in ("range", "arange", "trange") and isinstance(
            at.upper, ast.BinOp) and isinstance(at.upper.op, ast.Add) and written(at.upper.left) == written(at.lower)):
        return False
    width, hop = at.upper.right, over.args[2] if len(over.args) > 2 else ast.Constant(1)
    wide, step = code.number(width), code.number(hop)
    return step is not None and (wide is None or step < wide) and (step == 1 or wide is not None) and (
        written(width) != written(hop)) and wide != 1


def _is_parted(code: Syntax, at: ast.Slice) -> bool:
    """Whether another slice of the same value begins where this one ends, or ends where it begins."""
    found: list[tuple[str, ast.Slice]] = []
    for taken in code.inside(code.scope(at), ast.Subscript):
        rows = taken.slice.elts[0] if isinstance(taken.slice, ast.Tuple) and taken.slice.elts else taken.slice
        if isinstance(rows, ast.Slice):
            found.append((written(taken.value), rows))
    whole = next((w for w, rows in found if rows is at), None)
    return any(w == whole and (
        (at.upper is not None and written(rows.lower) == written(at.upper)) or (
            at.lower is not None and written(rows.upper) == written(at.lower))) for w, rows in found)
