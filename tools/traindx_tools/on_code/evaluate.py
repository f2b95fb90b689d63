"""Expressions to abstract values."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from traindx_tools.on_code import arithmetic, axes, axis_calls, containers, gradient_tests, mask_truth
from traindx_tools.on_code.aligned import Aligned
from traindx_tools.on_code.interpreter import Frame
from traindx_tools.on_code.operators import BINARY, SIGNS, compared, joined
from traindx_tools.on_code.source import below
from traindx_tools.on_code.values import (
    NONE,
    UNKNOWN,
    Bag,
    Const,
    Function,
    Instance,
    Operation,
    Parameters,
    Ref,
    Site,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    finite_or_inf,
    join,
    truth,
)

MAX_EXPRESSION_DEPTH = 60
MAX_ENTRIES = 1_000
"""Entries of a written dict that are followed; those after it are told of as an open end."""
MAX_EACH = 8
"""Arrays and numbers in a written list up to which a comprehension is gone through one by one."""
_OF_NUMBERS = frozenset({"int", "float", "round", "abs", "max", "min"})
"""Calls that make numbers of numbers, and nothing that would be made several times."""
MAX_COMPARISONS = 8
"""Comparisons of comparisons of ... that are kept as such."""

_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Evaluator(Aligned):
    """Evaluates expressions in a frame. Calls and statements are added by the classes that derive from it."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self.assumes = False
        """Whether settings are taken for what their defaults say."""
        self._table: dict[type[ast.AST], Callable[[Any, Frame], Value]] = {ast.Constant: self._constant,
            ast.Name: self._name, ast.Attribute: self._attribute, ast.Call: self._call, ast.BinOp: self._binary,
            ast.UnaryOp: self._unary, ast.BoolOp: self._boolean, ast.Compare: self._compare,
            ast.IfExp: self._conditional, ast.Tuple: self._sequence, ast.List: self._sequence, ast.Set: self._sequence,
            ast.Dict: self._dict, ast.Subscript: self._subscript, ast.Lambda: self._lambda,
            ast.ListComp: self._comprehension, ast.SetComp: self._comprehension, ast.GeneratorExp: self._comprehension,
            ast.DictComp: self._comprehension, ast.JoinedStr: self._formatted, ast.Starred: self._starred,
            ast.Await: self._starred, ast.NamedExpr: self._walrus, ast.Yield: self._yield,
            ast.YieldFrom: self._yield_from, ast.Slice: self._slice}

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression."""
        self.fuel -= 1  # `spend`, written out: this is the innermost step of all
        if self.fuel < 0:
            self.fuel += 1
            self.spend(node, frame)
            return UNKNOWN
        if self._depth > MAX_EXPRESSION_DEPTH:
            return UNKNOWN
        if node.__class__ is ast.Name:
            return self._name(node, frame)
        handler = self._table.get(node.__class__)
        if handler is None:
            return UNKNOWN
        self._depth += 1
        try:
            return handler(node, frame)
        finally:
            self._depth -= 1

    # leaves

    def _constant(self, node: ast.Constant, frame: Frame) -> Value:
        return Const(finite_or_inf(node.value)) if not isinstance(node.value, complex) else UNKNOWN

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        name = node.id
        found = frame.env[name] if name in frame.env else frame.lookup(name)
        if found is not None:
            if self.unread.held:
                self.unread.read(name, frame, found, around=name not in frame.env)
            return found
        if name in containers.BUILTINS:
            return Ref(f"builtins.{name}")
        return Symbol("global", name)

    def _formatted(self, node: ast.JoinedStr, frame: Frame) -> Value:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.evaluate(part.value, frame)
        return Symbol("text", "f-string")

    def _starred(self, node: ast.Starred | ast.Await, frame: Frame) -> Value:
        return self.evaluate(node.value, frame)

    def _walrus(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.evaluate(node.value, frame)
        frame.bind(node.target.id, value)
        return value

    def _yield(self, node: ast.Yield, frame: Frame) -> Value:
        frame.yields.append(self.evaluate(node.value, frame) if node.value else NONE)
        frame.yield_grad = self.grad
        counted = len(frame.loops) == 1 and len(frame.yields) == 1
        frame.yield_count = frame.loops[0].count if counted else None
        self.event("yield", "yield", node, frame)
        return UNKNOWN

    def _yield_from(self, node: ast.YieldFrom, frame: Frame) -> Value:
        frame.yields.append(self.element(self.evaluate(node.value, frame), node, frame))
        return UNKNOWN

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return self.define(node, frame)

    def _slice(self, node: ast.Slice, frame: Frame) -> Value:
        ends = [self.evaluate(e, frame) if e else NONE for e in (node.lower, node.upper, node.step)]
        self.note_ranks(0, ends)
        return Bag("slice", ends)

    # containers

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set, frame: Frame) -> Value:
        items: list[Value] = []
        is_open = False
        for item in node.elts:
            value = self.evaluate(item, frame)
            if isinstance(item, ast.Starred):
                if isinstance(value, Bag):
                    items.extend(value.items)
                    is_open = is_open or value.open
                else:
                    items.append(self.element(value, node, frame))
                    is_open = True
            else:
                items.append(value)
            if len(items) > 200:
                return Bag(type(node).__name__.lower(), items[:20], open=True, site=self.site(node, frame))
        made = Bag(type(node).__name__.lower(), items, is_open, self.site(node, frame), self.loops)
        self.note_cut(made, node, frame)
        return made

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        table = Table({}, site=self.site(node, frame), born_in=self.loops)
        for key, item in zip(node.keys[:MAX_ENTRIES], node.values, strict=False):
            value = self.evaluate(item, frame)
            if key is None:
                containers.merge_tables(table, value)
                continue
            containers.put(table, self.evaluate(key, frame), value)
        if len(node.keys) > MAX_ENTRIES:
            table.open = True
            self.left_out(frame.file, node, f"a dict's entries after the first {MAX_ENTRIES:,}")
        self.note_cut(table, node, frame)
        return table

    def _comprehension(self, node: _Comprehension, frame: Frame) -> Value:
        inner = Frame(frame.file, frame.module, frame.function, {}, (frame.env, *frame.closures), loops=frame.loops)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and (each := self._each(node, inner)) is not None:
            return Bag("list", each, site=self.site(node, frame), born_in=self.loops)
        if len(node.generators) == 2 and (held := self._parameters_of_each(node, inner)) is not None:
            return held
        inner.yields, outer_loops, depth = frame.yields, self.loops, len(self.blocks)
        conditions: list[ast.expr] = []
        first: Value | None = None
        spent: Site | None = None
        for generator in node.generators:
            iterable = self.evaluate(generator.iter, inner)
            spent = iterable.spent if isinstance(iterable, Parameters) and first is None else spent
            first = iterable if first is None else first
            block = self.iterate(generator.target, iterable, node, inner)
            self.blocks.append(block)
            self.loops = (*self.loops, block)
            for test in generator.ifs:
                self.evaluate(test, inner)
            conditions.extend(generator.ifs)
        if isinstance(node, ast.DictComp):
            key, value = self.evaluate(node.key, inner), self.evaluate(node.value, inner)
        else:
            key, value = NONE, self.evaluate(node.elt, inner)
        del self.blocks[depth:]
        self.loops = outer_loops
        site = self.site(node, frame)
        if isinstance(node, ast.DictComp):
            if isinstance(first, Thing) and first.type == "enumerate" and first.args:
                self.event("numbering", "numbering", node, frame, receiver=first.args[0], args=(value,))
            if isinstance(first, Symbol) and first.parent is not None and _is_copy(node) and not conditions:
                return first.parent
            table = Table({}, open=True, rest=value, site=site, born_in=self.loops)
            if isinstance(key, Const):
                containers.put(table, key, value)
            return table
        chosen = containers.chosen_parameters(first, value, conditions, node)
        if chosen is not None:
            chosen.spent = spent
            return chosen
        kind = {"ListComp": "list", "SetComp": "set"}.get(type(node).__name__, "generator")
        made = Bag(kind, [value], open=True, site=site, born_in=self.loops)
        made.ordered_by = containers.ordered_by(node)
        if isinstance(first, Thing) and len(node.generators) == 1:
            made.size = first.state.get("count")
        elif isinstance(first, (Bag, Symbol, Tensor)) and len(node.generators) == 1 and not conditions:
            made.size = Operation("len", (first,), 1)
        return made

    def _each(self, node: ast.ListComp | ast.GeneratorExp, inner: Frame) -> list[Value] | None:
        """The results one by one, of what is few and known: `x, y = (a.to(device) for a in (x, y))`."""
        over = node.generators[0]
        if len(node.generators) > 1 or over.ifs or not isinstance(over.iter, (ast.Name, ast.Tuple, ast.List)):
            return None
        given = self.evaluate(over.iter, inner)
        numbers = all(isinstance(c.func, ast.Name) and c.func.id in _OF_NUMBERS for c in below(node.elt)
                      if isinstance(c, ast.Call))
        arrays = (Tensor, Symbol, Bag, Const) if numbers else (Tensor, Symbol, Bag)
        if not isinstance(given, Bag) or given.open or not 2 <= len(given.items) <= MAX_EACH or not all(
                isinstance(i, arrays) for i in given.items):
            return None
        made = []
        for item in given.items:
            self.assign(over.target, item, inner)
            made.append(self.evaluate(node.elt, inner))
        return made

    def _parameters_of_each(self, node: _Comprehension, inner: Frame) -> Parameters | None:
        """`[p for m in (encoder, decoder) for p in m.parameters()]`: those of all of a few objects."""
        over, *rest = node.generators
        func = over.iter.func if isinstance(over.iter, ast.Call) else None
        of = func.value if isinstance(func, ast.Attribute) and func.attr == "values" else over.iter
        plain = isinstance(of, (ast.Name, ast.Attribute, ast.Tuple, ast.List)) and not over.ifs
        each = containers.each_apart(self.evaluate(over.iter, inner)) if plain else None
        if each is None or isinstance(node, ast.DictComp):
            return None
        found: list[Value] = []
        for item in each:
            self.assign(over.target, item, inner)
            found.append(self._comprehension(ast.copy_location(ast.ListComp(node.elt, rest), node), inner))
        held = [p for p in found if isinstance(p, Parameters)]
        return Parameters(tuple(m for p in held for m in p.modules), all(p.only_trainable for p in held),
                          any(p.partial for p in held)) if held and len(held) == len(found) else None

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        base = self.evaluate(node.value, frame)
        index = self.evaluate(node.slice, frame)
        if isinstance(base, Instance):
            method = base.klass.info.method("__getitem__")
            if method is not None:
                return self.call(self.bound(method, base), [index], {}, node, frame)
            if (method := base.klass.info.method("__missing__")) is not None:
                return self._entry(base, method, index, node, frame)
        bounded = isinstance(index, Tensor) and index.low is not None and index.high is not None
        if isinstance(base, Tensor) and ("time_first" in base.tags or bounded):
            self.event("index", "index", node, frame, receiver=base, args=(index,))
        found = containers.item(base, index, node.slice)
        arrays = isinstance(found, (Tensor, Symbol)) and isinstance(base, (Tensor, Symbol, Thing, Operation))
        known = axes.of(base) if arrays else None
        if isinstance(index, Operation) and self.counted(index) == axes.SCALAR:
            index = Symbol("index", axes.text(index))
        return axis_calls.given_to(found, axes.indexed(known, index)) if known is not None and known.dims else found

    def _entry(self, base: Instance, method: Function, index: Value, node: ast.AST, frame: Frame) -> Value:
        """An entry of a dict that makes what it lacks: one stands for all, and lives as long as the dict."""
        known: Value | None = base.state.get("entry")
        if known is None:
            loops, self.loops = self.loops, base.born_in  # type: ignore[assignment]
            made = self.call(self.bound(method, base), [index], {}, node, frame)
            self.loops, known = loops, base.state.setdefault("entry", made)
        return known

    # operators

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.evaluate(node.left, frame), self.evaluate(node.right, frame)
        return self.combine(BINARY.get(type(node.op), "?"), left, right, node, frame)

    def combine(self, op: str, left: Value, right: Value, node: ast.AST, frame: Frame) -> Value:
        """The result of a binary operator; an event where two arrays meet."""
        result = arithmetic.binary(op, left, right, self.site(node, frame), self.grad)
        if isinstance(result, Tensor):
            known = axis_calls.product(axes.of(left), axes.of(right)) if op == "@" else axes.broadcast(
                self.counted(left), self.counted(right))
            over = op == "/" and known is not None and bool((axes.of(right) or axes.SCALAR).dims)
            result = replace(result, axes=replace(known, whole=None) if known is not None and over else known)
        if op == "@":
            self.note_product(left, right, node, frame)
        else:
            self.note_clash(op, [left, right], node, frame)
        if (isinstance(left, Tensor) and isinstance(right, Tensor)) or (op in ("/", "**", "+", "@")
                and (isinstance(left, Tensor) or isinstance(right, Tensor))):
            self.event("operation", op, node, frame, args=(left, right), result=result)
        return result

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return gradient_tests.negated(value) if known is None else Const(not known)
        return arithmetic.unary("-" if isinstance(node.op, ast.USub) else "+" if isinstance(node.op, ast.UAdd) else "~",
            value)

    def _boolean(self, node: ast.BoolOp, frame: Frame) -> Value:
        is_and = isinstance(node.op, ast.And)
        result: Value | None = None
        for part in node.values:
            value = self.evaluate(part, frame)
            known = truth(value)
            if known is (not is_and):
                return value if result is None else join(result, value) if is_and is False else value
            if known is None:
                result = value if result is None else joined(result, value, "and" if is_and else "or")
            else:
                result = value if result is None else result
        return result if result is not None else UNKNOWN

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        values = [self.evaluate(v, frame) for v in (node.left, *node.comparators)]
        if len(values) == 2:
            known = compared(node.ops[0], values[0], values[1], self.assumes)
            if known is not None:
                return Const(known)
        tensors = [v for v in values if isinstance(v, Tensor)]
        sign = SIGNS.get(type(node.ops[0]), "?") if len(values) == 2 else "?"
        if tensors:
            tags = mask_truth.compared(sign, *values[:2]) | {"integer"}
            self.note_clash(sign, values, node, frame)
            return Tensor(grad=False, dtype="bool", low=0.0, high=1.0, tags=tags,
                          axes=axes.broadcast(*map(axes.of, values)) if len(values) == 2 else None)
        depth = 1 + max((v.depth for v in values if isinstance(v, Operation)), default=0)
        return Operation("compare", tuple(values), depth, sign) if depth <= MAX_COMPARISONS else UNKNOWN

    def _conditional(self, node: ast.IfExp, frame: Frame) -> Value:
        test = self.evaluate(node.test, frame)
        known = truth(test)
        if known is not None:
            return self.evaluate(node.body if known else node.orelse, frame)
        return join(self._side(node, test, frame), self._side(node, test, frame, is_other=True))

    def _side(self, node: ast.IfExp, test: Value, frame: Frame, is_other: bool = False) -> Value:
        """One side of `a if test else b`, in a branch of its own."""
        with self.in_branch(node, test, frame, is_other) as block:
            value = self.evaluate(node.orelse if is_other else node.body, frame)
        if not block.body:
            self.blocks[-1].body.remove(block)
        return value

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError


def _is_copy(node: ast.DictComp) -> bool:
    """`{k: v for k, v in state.items()}`: the same values under the same keys."""
    over, value = node.generators[0], node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "detach":
        value = value.func.value
    plain = not over.ifs and len(node.generators) == 1 and ast.unparse(over.iter).endswith(".items()")
    return plain and ast.unparse(over.target).strip("()") == f"{ast.unparse(node.key)}, {ast.unparse(value)}"
