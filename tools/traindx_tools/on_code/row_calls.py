"""What calls do with rows: of libraries by the table `rows.toml`, of the project by what their bodies give."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable
from dataclasses import replace

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.nodes import argument, last_name, parameters, written
from traindx_tools.on_code.row_names import (
    NOTHING,
    Body,
    Frame,
    Made,
    Said,
    Seq,
    Set,
    Value,
    fields,
    invented,
    results,
)
from traindx_tools.on_code.rows import ROWS, Parts, bare
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax
from traindx_tools.program.moments import Spot
from traindx_tools.program.rows import Rows, Step

_DRAWS = re.compile(r"(jax\.random|numpy\.random|random|torch\.rand|torch\.bernoulli|torch\.normal)")


class Origins(Parts):
    """Adds calls: the whole follower."""

    def __init__(self, look: Lookup) -> None:
        super().__init__(look)
        self.handlers[ast.Call] = self._call
        self._trains: dict[int, bool] = {}

    def used(self, node: ast.expr, frame: Frame, loader: str, is_module: bool = False) -> Set:
        """The rows of an expression, of one of its loaders where it is a module of data, or may be."""
        value = self.of(node, frame)
        method = self.kept(value, loader) if isinstance(value, Made) and loader else NOTHING
        if isinstance(method, Body) and isinstance(value, Made):
            return self.union(results(method.node), value.init.inside(method.node, value))
        return NOTHING if is_module and loader != "train_dataloader" else self.flat(value)

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        name, func = last_name(node.func), node.func
        owner = self.of(func.value, frame) if isinstance(func, ast.Attribute) else NOTHING
        made = self._of_project(node, owner, name, frame)
        if made is not None:
            return made
        if isinstance(owner, Made) and any("self." + name in self.bindings(owner.init.inside(m, owner))
                                           for m in owner.kind.body if isinstance(m, FunctionNode)):
            owner = self.kept(owner, name)
        given = [a.value if isinstance(a, ast.Starred) else a for a in node.args]
        first = given[0] if given else node.keywords[0].value if node.keywords else None
        whole, by = self.flat(owner) or self.rows(first, frame), (id(node), frame.key)
        if name in ROWS["sizes"] or name in ROWS["learns"] or (isinstance(func, ast.Call) and last_name(
                func.func) in ROWS["learns"] | {"grad"}) or (first is None and name in ROWS["drawn"]):
            return NOTHING
        if name in ROWS["same"] and first is not None:
            if len(given) > 1 and name == "prepare":
                return Seq(lambda i: self.of(given[i], frame) if i < len(given) else NOTHING, len(given))
            return self.of(first, frame)
        if name == "zip":
            items = [self.of(a, frame) for a in given]
            if node.args and isinstance(node.args[0], ast.Starred):
                return self.flat(items[0])
            apart = any(isinstance(i, Seq) for i in items)
            return Seq(lambda i: Seq(lambda j: NOTHING if j >= len(items) else self.along(items[j], (i,)) if apart
                                     else self.turn(items[j]), len(items)))
        if name == "enumerate" and first is not None:
            value = self.of(first, frame)
            return Seq(lambda i: NOTHING if i == 0 else self.turn(value), 2) if isinstance(value, Seq) else value
        if name in ROWS["pairs"]:
            return Seq(lambda i: self._cut(self.rows(given[i // 2], frame), ("drawn", *by), i % 2, node, frame)
                       if i // 2 < len(given) else NOTHING, 2 * len(given))
        if name in ROWS["parts"] and first is not None and not isinstance(self.of(first, frame), Said):
            maker = frame.code.origin(func.value) if isinstance(func, ast.Attribute) else func
            if last_name(getattr(maker, "func", None)) in ROWS["folds"]:
                order = frozenset({Rows(("order", *by))})
                return Seq(lambda _: Seq(lambda i: self._cut(order, ("split", *by), i, node, frame), 2))
            library = isinstance(func, ast.Name) or frame.code.qualified(func)
            cut = self.rows(first, frame) if library else self.flat(owner)
            return Seq(lambda i: self._cut(cut, ("drawn" if name == "random_split" else "split", *by), i, node, frame))
        if name in ROWS["taken"] and given:
            base = self.rows(given[0], frame) if len(given) > 1 else self.flat(owner)
            return self.taken(base, given[-1], self.of(given[-1], frame), frame)
        if name in ROWS["windows"]:
            sizes = [frame.code.number(a) for a in given]
            apart = name == "unfold" and (len(sizes) < 3 or not sizes[1] or not sizes[2] or sizes[2] >= sizes[1])
            step = [] if apart else [Step("windows", by, at=frame.spot(node))]
            return frozenset(r.then(*step) for r in whole)
        if name in ROWS["rests"] and given and (len(given) > 1 or self.flat(owner)):
            cuts = [r.cuts[-1] for r in self.rows(given[-1], frame) if r.cuts][:1]
            return frozenset(r.then(*(Step("cut", c.by, ("rest", c.part), True, c.at) for c in cuts))
                             for r in (self.rows(first, frame) if len(given) > 1 else self.flat(owner)))
        if name == "sample" and (size := argument(node, 1, "frac")) is not None and frame.code.number(size) != 1 and (
                argument(node, 99, "replace") is None):
            return frozenset(r.then(Step("cut", ("drawn", *by), 0, False, frame.spot(node))) for r in self.flat(owner))
        if name in ROWS["drawn"] or name in ROWS["counted"]:
            fixed = name in ROWS["counted"] or self._is_seeded(node, frame)
            many = frame.code.origin(first) if first is not None else None
            over = bare(self.rows(many.args[0], frame)) if isinstance(many, ast.Call) and last_name(
                many.func) == "len" and many.args else None
            return self.rows(first, frame) or frozenset({Rows(("order", written(node) if fixed else by, over))})
        if name in ROWS["statistics"]:
            axis = argument(node, 1 if frame.code.qualified(func) else 0, "axis", "dim")
            whole = self.union(given, frame) if name == "corrcoef" else whole
            axes = axis.elts if isinstance(axis, (ast.Tuple, ast.List)) else [axis]
            if any(frame.code.number(a) == 0 for a in axes) or (axis is None and name != "sum"):
                at = frame.spot(node)
                by_whom = self.handed(frame)
                return frozenset(replace(r, what="statistic", made=at, handed=by_whom)
                                 if r.whole and not r.what else r for r in whole)
            return whole
        if name in ("fit", "fit_transform", "transform") and given:
            fitted = self._fitted(node, name, frame)
            if fitted is not None:
                return fitted
        rows = self.union([*given, *(k.value for k in node.keywords)], frame) | self.flat(owner)
        if name == "get" and first is not None and any(r.what == "numbering" for r in self.flat(owner)):
            return self.taken(self.flat(owner), first, self.of(first, frame), frame)
        if name in ROWS["ranks"]:
            return frozenset(replace(r, what="ranking") for r in rows if r.what) or rows
        if name in ROWS["joins"] | ROWS["copies"] | ROWS["copy_where_told"]:
            return self._joined(node, name, rows, frame)
        if not rows and (name in ROWS["reads"] or "dataset" in frame.code.qualified(func).lower()):
            said = [(self.of(a, frame), a) for a in given]
            texts = [str(v.value) if isinstance(v, Said) else written(a) for v, a in said]
            texts += [f"{k.arg}={written(k.value)}" for k in node.keywords if k.arg in ("split", "train", "subset")]
            texts += [str(owner.value)] if isinstance(owner, Said) else []
            return frozenset({Rows(("read", " ".join(texts), name))})
        return rows or (self._invented(node, name, frame) if name in ROWS["invents"] else NOTHING)

    def _invented(self, node: ast.Call, name: str, frame: Frame) -> Set:
        """Rows that a generator draws; none where there are as many as of others, on which it is noise."""
        given = [*node.args, *(k.value for k in node.keywords if k.arg in ("size", "shape"))]
        shape = next((a for a in given if isinstance(a, (ast.Tuple, ast.List))), None)
        many = shape.elts[0] if shape is not None and shape.elts else (
            given[0 if "rand" in name else -1] if given else None)
        if many is None or re.search(r"shape|size\(|len\(", written(frame.code.origin(many))):
            return NOTHING
        around = id(frame.scope), frame.key, written(many)
        turns = frame.turns or bool(frame.code.loops(node))
        return frozenset({Rows(("invented", around, (node.lineno, node.col_offset)), whole=not turns)})

    def _cut(self, rows: Set, by: Hashable, part: Hashable, node: ast.Call, frame: Frame) -> Set:
        return frozenset(r.then(Step("cut", by, part, True, frame.spot(node))) for r in rows)

    def _joined(self, node: ast.Call, name: str, rows: Set, frame: Frame) -> Set:
        """Rows behind rows, and rows that are given more than once."""
        copied = name in ROWS["copies"]
        if name in ROWS["copy_where_told"]:
            told = argument(node, 99, "axis" if name == "repeat" else "replace")
            copied = isinstance(told, ast.Constant) and told.value in (0, True)
        first = node.args[0] if node.args else None
        held = self.of(first, frame) if first is not None and name in ROWS["joins"] else None
        if isinstance(held, Seq) and held.length and frame.code.number(argument(node, 1, "axis", "dim")) in (None, 0):
            sets = [self.flat(v) for v in held.all()]
            here = id(frame.scope), frame.key  # where they are drawn, two halves may share an angle
            copied = any(r.whole and r in other and not any(s[1][:2] == here for s in invented([r]))
                         for i, one in enumerate(sets) for r in one for other in sets[i + 1:])
        step = Step("copied", at=frame.spot(node), handed=self.handed(frame))
        return frozenset(r.then(step) if copied and r.whole and not (  # numbers of classes, not of rows
            isinstance(r.source, tuple) and r.source[0] == "order" and r.source[-1] is None) else r for r in rows)

    def _fitted(self, node: ast.Call, name: str, frame: Frame) -> Value | None:
        """What a scaler of a library gives; None where it is none."""
        owner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        made = frame.code.origin(owner)
        while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "fit":
            made = made.func.value
        kind = last_name(made.func) if isinstance(made, ast.Call) else ""
        chooses = kind in ROWS["choosers"]
        if not chooses and not any(w in kind for w in ROWS["fitted"]):
            return None
        fits = [node] if name == "fit_transform" else [
            c for c in frame.code.calls("fit", "fit_transform") if isinstance(c.func, ast.Attribute) and c.args
            and frame.code.scope(c) is frame.code.scope(node) and (
                written(c.func.value) == written(owner) or frame.code.origin(owner) is c)]
        on = frozenset(r for c in fits for r in self.rows(c.args[0], frame) if not r.what)
        part = "statistic" if any(w in kind for w in ROWS["scales"]) else kind
        step = Step("labels" if chooses else "fitted", bare(on), part, at=frame.spot(fits[0] if fits else node))
        return frozenset(r.then(step) for r in self.rows(node.args[0], frame)) if name != "fit" else NOTHING

    def _is_seeded(self, node: ast.Call, frame: Frame) -> bool:
        """Whether each call of the function around draws the same: its generator is made there, from a seed."""
        own = node.func.value if isinstance(node.func, ast.Attribute) else None
        generator = argument(node, 99, "generator") or own
        made = frame.code.origin(generator) if generator is not None else None
        same = frame.code.scope(node)
        return (isinstance(made, ast.Call) and frame.code.scope(made) is same and bool(made.args or made.keywords)
                and not isinstance(frame.scope, ast.Module)) or any(
            frame.code.scope(c) is same and c.lineno < node.lineno for c in frame.code.calls("seed", "manual_seed"))

    # functions and classes of the project

    def _of_project(self, node: ast.Call, owner: Value, name: str, frame: Frame) -> Value | None:
        """What a function or class of the project gives; None where the call is of a library."""
        callee: Value = NOTHING
        if isinstance(owner, Made):
            callee = self.kept(owner, name)
        elif isinstance(node.func, ast.Name):
            callee = self._name(node.func, frame)
            kinds = self.look.classes.get(name, [])
            if not isinstance(callee, Body) and len(kinds) == 1:
                return self._made(*kinds[0], node, frame)
        elif name in self.look.functions and not frame.code.qualified(node.func):
            found = self.look.function(frame.code, node.func)
            callee = Body(*found, None) if found is not None and frame.code.owner(found[1]) is None else NOTHING
        if isinstance(callee, Made) and not callee.kind.bases:
            callee = self.kept(callee, "__call__")
        if not isinstance(callee, Body):
            return None
        if len(frame.key) > 12:
            return NOTHING
        inner = self.entered(callee, node, frame)
        gives = [r for r in results(callee.node) if self.runs(r, inner) is not False]
        if self._learns(callee.node):  # a state, but for what it has measured in the end
            gives = [r for r in gives if isinstance(r, ast.Call) and last_name(r.func) in self.look.functions]
        if callee.owner is not None and any(isinstance(r, ast.Name) and r.id == "self" for r in gives):
            return callee.owner
        values = [v for v in (self.of(r, inner) for r in gives) if not (isinstance(v, Said) and v.value is None)]
        noise = self._left_on(callee.code, callee.node, callee.node, node, frame)
        if noise is not None:
            return frozenset(r.then(noise) for v in values for r in self.flat(v))
        if values and any(isinstance(n, ast.Yield) for n in below(callee.node)):
            return Seq(lambda i: values[min(i, len(values) - 1)])
        return values[0] if len(values) == 1 else NOTHING.union(*map(self.flat, values))

    def entered(self, callee: Body, node: ast.Call, frame: Frame) -> Frame:
        """The frame of a call."""
        spec = parameters(callee.node) if isinstance(callee.node, (*FunctionNode, ast.Lambda)) else {}
        names = [n for n in spec if not (callee.owner is not None and n in ("self", "cls"))]
        found = Frame(callee.code, callee.node, {}, callee.around, callee.owner, (*frame.key, id(node)),
                      frame.turns or bool(frame.code.loops(node)), (node, frame))
        own = bool(node.args) and last_name(node.args[0]) == getattr(callee.node, "name", "")  # scan(body, carry, rows)
        for at, arg in enumerate(node.args[own:]):
            if isinstance(arg, ast.Starred):
                value = self.of(arg.value, frame)
                found.given.update({n: self.along(value, (i,)) for i, n in enumerate(names[at:])})
                break
            if at < len(names):
                found.given[names[at]] = arg, frame
        found.given.update({k.arg: (k.value, frame) for k in node.keywords if k.arg is not None})
        outer = callee.around or Frame(callee.code, callee.code.file.tree)
        found.given.update({n: (d, outer) for n, d in spec.items() if d is not None and n not in found.given})
        return found

    def handed(self, frame: Frame) -> Spot | None:
        """The call that hands a function the rows that it works on."""
        found: Spot | None = None
        while frame.called is not None:
            node, outer = frame.called
            if not any(self.rows(a, outer) for a in node.args):
                break
            found, frame = outer.spot(node), outer
            if not any(isinstance(a, ast.Name) and a.id in outer.given for a in node.args):
                break
        return found

    def _made(self, code: Syntax, kind: ast.ClassDef, node: ast.Call, frame: Frame) -> Value:
        """An object of a class of the project."""
        init = next((m for m in kind.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
        if init is not None:
            found = Made(kind, Frame(code, init), self._left_on(code, init, kind, node, frame), frame)
            found.init = self.entered(Body(code, init, None, found), node, frame)
            return found
        inner = Frame(code, kind, key=(*frame.key, id(node)))
        inner.given.update({s.target.id: (s.value, Frame(code, code.file.tree)) for s in kind.body if isinstance(
            s, ast.AnnAssign) and isinstance(s.target, ast.Name) and s.value is not None})
        inner.given.update({n: (a, frame) for n, a in zip(fields(kind), node.args, strict=False)})
        inner.given.update({k.arg: (k.value, frame) for k in node.keywords if k.arg})
        return Made(kind, inner, None, frame)

    def asked(self, method: ast.AST, made: Made) -> Frame:
        """The call of a method, where what made the object calls it."""
        name, at = getattr(method, "name", ""), made.maker
        calls = [c for c in at.code.calls(name) if at.code.scope(c) is at.scope and c.args and isinstance(
            c.func, ast.Attribute) and self.of(c.func.value, at) is made] if at is not None else []
        return self.entered(Body(made.init.code, method, None, made), calls[0], at) if len(calls) == 1 and (
            at is not None) else made.init.inside(method, made)

    def _learns(self, body: ast.AST, left: int = 4) -> bool:
        """Whether a function makes steps of training: what it gives is a state, and no rows."""
        if id(body) not in self._trains:
            self._trains[id(body)] = False
            names = {last_name(c.func) for c in below(body) if isinstance(c, ast.Call)}
            known = [self.look.functions.get(n, []) for n in names] if left else []
            self._trains[id(body)] = not names.isdisjoint(ROWS["learns"]) or any(
                self._learns(found[0][1], left - 1) for found in known if len(found) == 1)
        return self._trains[id(body)]

    def _left_on(self, code: Syntax, body: ast.AST, around: ast.AST, call: ast.Call, frame: Frame) -> Step | None:
        """A switch that a call leaves at its default, which is on, and under which rows are changed at random."""
        spec = parameters(body) if isinstance(body, FunctionNode) else {}
        for i, (name, default) in enumerate(spec.items()):
            if not (isinstance(default, ast.Constant) and default.value is True) or any(
                    k.arg is None for k in call.keywords) or argument(call, i - (body is not around), name) is not None:
                continue
            for node in below(around):
                if isinstance(node, (ast.If, ast.IfExp)) and last_name(node.test) == name and any(
                        self._draws(code, c) for s in (node.body if isinstance(node, ast.If) else [node.body])
                        for c in below(s) if isinstance(c, ast.Call)):
                    return Step("noise", (id(body), name), name, at=frame.spot(call))
        return None

    def _draws(self, code: Syntax, call: ast.Call, left: int = 2) -> bool:
        found = self.look.functions.get(last_name(call.func), []) if left else []
        return _DRAWS.match(code.qualified(call.func)) is not None or (len(found) == 1 and any(
            self._draws(found[0][0], c, left - 1) for c in below(found[0][1]) if isinstance(c, ast.Call)))
