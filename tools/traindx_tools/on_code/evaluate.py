"""Expressions to abstract values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from traindx_tools.knowledge.names import THING_ATTRIBUTES
from traindx_tools.on_code import arithmetic, containers, gradient_tests, polarity
from traindx_tools.on_code.definitions import ClassInfo, FunctionInfo
from traindx_tools.on_code.frame import Frame
from traindx_tools.on_code.names import canonical
from traindx_tools.on_code.nesting import MOST_PARTS, Nested
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.values import (
    NONE,
    UNKNOWN,
    Bag,
    Const,
    Function,
    Instance,
    Klass,
    Method,
    ModuleValue,
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
    unwrap,
)

MAX_EXPRESSION_DEPTH = 60
MAX_ENTRIES = 1_000
"""Entries of a written dict that are followed; those after it are told of as an open end."""
MAX_COMPARISONS = 8
"""Comparisons of comparisons of ... that are kept as such."""
_BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}
_NEVER_NONE = (Tensor, Thing, Instance, Bag, Table, Function, Klass, Parameters, Ref, ModuleValue, Operation)


class Evaluator:
    """Evaluates expressions in a frame. Calls and statements are added by the classes that derive from it."""

    def __init__(self) -> None:
        self.grad: bool | None = True
        self.autocast: str | None = None
        self.blocks: list[Block] = []
        self.loops: tuple[Block, ...] = ()
        self.differentiated = False
        """Whether the code is being followed inside jax.grad or a relative."""
        self.fuel = 0
        self.omitted: dict[str, tuple[SourceFile, str]] = {}
        """For each file followed in part only, by path: what was left out first."""
        self.created = 0
        self.stored: dict[tuple[Symbol, str], Value] = {}
        """Attributes that were set on what an unknown call gave: `args = parse()`, `args.seed += rank`."""
        self.frozen: list[Thing | Instance] = []
        """Modules of which all parameters were frozen at some time, in order."""
        """How many objects were made: a function that makes objects is not remembered."""
        self._depth = 0
        self._table: dict[type[ast.AST], Callable[[Any, Frame], Value]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Call: self._call,
            ast.BinOp: self._binary,
            ast.UnaryOp: self._unary,
            ast.BoolOp: self._boolean,
            ast.Compare: self._compare,
            ast.IfExp: self._conditional,
            ast.Tuple: self._sequence,
            ast.List: self._sequence,
            ast.Set: self._sequence,
            ast.Dict: self._dict,
            ast.Subscript: self._subscript,
            ast.Lambda: self._lambda,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.DictComp: self._comprehension,
            ast.JoinedStr: self._formatted,
            ast.Starred: self._starred,
            ast.Await: self._starred,
            ast.NamedExpr: self._walrus,
            ast.Yield: self._yield,
            ast.YieldFrom: self._yield_from,
            ast.Slice: self._slice,
        }

    # what derived classes provide

    def call(self, callee: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame) -> Value:
        """The result of calling a value."""
        raise NotImplementedError

    def element(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        """What iterating over a value gives, one item standing for all."""
        raise NotImplementedError

    def iterate(self, target: ast.expr, iterable: Value, node: ast.AST, frame: Frame) -> Block:
        """Open a loop block and bind its target."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Bind a target."""
        raise NotImplementedError

    def define(self, node: ast.Lambda, frame: Frame) -> Function:
        """A lambda as a function."""
        raise NotImplementedError

    # common ground

    def site(self, node: ast.AST, frame: Frame) -> Site:
        """Where a node stands."""
        return Site(frame.file.path, getattr(node, "lineno", 1))

    def event(
        self,
        kind: str,
        name: str,
        node: ast.AST,
        frame: Frame,
        receiver: Value | None = None,
        args: tuple[Value, ...] = (),
        kwargs: dict[str, Value] | None = None,
        result: Value | None = None,
        crossing: int = 0,
    ) -> Event:
        """An event at this point, appended to the block that is being built."""
        made = Event(
            kind,
            name,
            name[name.rfind(".") + 1 :],
            node,
            frame.file,
            frame.function,
            receiver,
            args,
            {} if kwargs is None else kwargs,
            result,
            self.grad,
            self.autocast,
            self.differentiated,
            crossing,
        )
        self.blocks[-1].body.append(made)
        return made

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

    def note_cut(self, value: Nested, node: ast.AST, frame: Frame) -> None:
        """Remember that a value holds too much to be looked through."""
        if value.cut:
            self.left_out(frame.file, node, f"values that hold more than {MOST_PARTS:,} parts")

    def left_out(self, file: SourceFile, node: ast.AST, what: str) -> None:
        """Remember what of a file is not followed; the first such place of each file is told."""
        self.omitted.setdefault(file.path, (file, f"{what} are left out (line {getattr(node, 'lineno', 1)})"))

    def spend(self, node: ast.AST, frame: Frame) -> bool:
        """Take one step from the budget of this entry and of the file; False where nothing is left."""
        self.fuel -= 1
        if self.fuel >= 0:
            return True
        self.left_out(frame.file, node, "steps beyond the budget of a file")
        return False

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

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame) -> Value:
        inner = Frame(frame.file, frame.module, frame.function, {}, (frame.env, *frame.closures), loops=frame.loops)
        inner.yields, outer_loops, depth = frame.yields, self.loops, len(self.blocks)
        conditions: list[ast.expr] = []
        first: Value | None = None
        for generator in node.generators:
            iterable = self.evaluate(generator.iter, inner)
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
            table = Table({}, open=True, rest=value, site=site, born_in=self.loops)
            if isinstance(key, Const):
                containers.put(table, key, value)
            return table
        chosen = containers.chosen_parameters(first, value, conditions, node)
        if chosen is not None:
            return chosen
        kind = {"ListComp": "list", "SetComp": "set"}.get(type(node).__name__, "generator")
        made = Bag(kind, [value], open=True, site=site, born_in=self.loops)
        made.ordered_by = containers.ordered_by(node)
        if isinstance(first, Thing) and len(node.generators) == 1:
            made.size = first.state.get("count")
        return made

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        base = self.evaluate(node.value, frame)
        index = self.evaluate(node.slice, frame)
        if isinstance(base, Instance):
            method = base.klass.info.method("__getitem__")
            if method is not None:
                return self.call(self.bound(method, base), [index], {}, node, frame)
        bounded = isinstance(index, Tensor) and index.low is not None and index.high is not None
        if isinstance(base, Tensor) and ("time_first" in base.tags or bounded):
            self.event("index", "index", node, frame, receiver=base, args=(index,))
        return containers.item(base, index, node.slice)

    # operators

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.evaluate(node.left, frame), self.evaluate(node.right, frame)
        return self.combine(_BINARY.get(type(node.op), "?"), left, right, node, frame)

    def combine(self, op: str, left: Value, right: Value, node: ast.AST, frame: Frame) -> Value:
        """The result of a binary operator; an event where two arrays meet."""
        result = arithmetic.binary(op, left, right, self.site(node, frame), self.grad)
        if (isinstance(left, Tensor) and isinstance(right, Tensor)) or (
            op in ("/", "**", "+", "@") and (isinstance(left, Tensor) or isinstance(right, Tensor))
        ):
            self.event("operation", op, node, frame, args=(left, right), result=result)
        return result

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return gradient_tests.negated(value) if known is None else Const(not known)
        return arithmetic.unary(
            "-" if isinstance(node.op, ast.USub) else "+" if isinstance(node.op, ast.UAdd) else "~", value
        )

    def _boolean(self, node: ast.BoolOp, frame: Frame) -> Value:
        is_and = isinstance(node.op, ast.And)
        result: Value | None = None
        for part in node.values:
            value = self.evaluate(part, frame)
            known = truth(value)
            if known is (not is_and):
                return value if result is None else join(result, value) if is_and is False else value
            if known is None:
                result = value if result is None else _joined(result, value, "and" if is_and else "or")
            else:
                result = value if result is None else result
        return result if result is not None else UNKNOWN

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        values = [self.evaluate(v, frame) for v in (node.left, *node.comparators)]
        if len(values) == 2:
            known = _compared(node.ops[0], values[0], values[1])
            if known is not None:
                return Const(known)
        tensors = [v for v in values if isinstance(v, Tensor)]
        sign = _SIGNS.get(type(node.ops[0]), "?") if len(values) == 2 else "?"
        if tensors:
            tags = polarity.compared(sign, *values[:2]) | {"integer"}
            return Tensor(grad=False, shape=tensors[0].shape, dtype="bool", low=0.0, high=1.0, tags=tags)
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
        block = Block("branch", node, frame.file, frame.function, subject=test, is_other=is_other)
        self.blocks[-1].body.append(block)
        self.blocks.append(block)
        value = self.evaluate(node.orelse if is_other else node.body, frame)
        self.blocks.pop()
        if not block.body:
            self.blocks[-1].body.remove(block)
        return value

    # attributes

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        return self.attribute(self.evaluate(node.value, frame), node.attr, node, frame)

    def attribute(self, base: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        """`base.name`."""
        if isinstance(base, Ref):
            return containers.constant_of(canonical(f"{base.name}.{name}"))
        if isinstance(base, Symbol):
            return self.stored.get((base, name)) or base.child("attribute", name)
        if isinstance(base, Instance):
            return self._instance_attribute(base, name, node, frame)
        if isinstance(base, ModuleValue):
            return base.names.get(name) or Symbol("attribute", name)
        if isinstance(base, Klass):
            found = base.info.method(name)
            if found is not None:
                return self.bound(found, base) if found.info.is_classmethod else found
            return base.info.attribute(name) or Symbol("attribute", f"{base.info.name}.{name}")
        if isinstance(base, Thing):
            return self._thing_attribute(base, name)
        return containers.attribute(base, name)

    def _thing_attribute(self, base: Thing, name: str) -> Value:
        attrs = base.state.get("attrs", {})
        if name in attrs:
            return attrs[name]  # type: ignore[no-any-return]
        if name == "grad" and base.type == "torch.nn.Parameter":
            return Tensor(grad=False, tags=frozenset({"gradient"}))
        if name == "module" and "wraps" in base.state:
            return unwrap(base)
        if name in base.kwargs and name not in ("params",):
            return base.kwargs[name]
        if name == "dataset" and base.args:
            return base.args[0]
        if name in THING_ATTRIBUTES:
            return Symbol("attribute", name, base, 1)
        return Method(base, name)

    def _instance_attribute(self, base: Instance, name: str, node: ast.AST, frame: Frame) -> Value:
        info: ClassInfo = base.klass.info
        if name in base.attrs:
            held = base.attrs[name]
            if isinstance(held, Const) and type(held.value) is bool and held.fixed and name in info.flags:
                return Const(held.value, fixed=False)
            counts = isinstance(held, Const) and type(held.value) is int and name in info.counters
            return Symbol("index", name) if counts else held
        method = info.method(name)
        if method is not None:
            if method.info.is_property:
                return self.call(self.bound(method, base), [], {}, node, frame)
            return method if method.info.is_static else self.bound(method, base)
        found = info.attribute(name)
        if found is not None:
            return Const(found.value, fixed=False) if isinstance(found, Const) and info.is_dataclass else found
        if name == "__class__":
            return base.klass
        if name == "training" and info.is_module:
            return Symbol("attribute", name, base, 1)
        return Method(base, name) if info.foreign_bases else Symbol("attribute", name, base, 1)

    def bound(self, function: Function, owner: Value) -> Function:
        """A method bound to an object; the same object for the same pair."""
        state = owner.state if isinstance(owner, (Instance, Thing)) else {}
        cache = state.setdefault("bound", {})
        key = id(function)
        if key not in cache:
            cache[key] = Function(function.info, function.closure, function.closures, owner, function.wrappers)
        return cache[key]  # type: ignore[no-any-return]

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError


def _joined(left: Value, right: Value, by: str) -> Value:
    """What a test with two open parts gives; of two numbers or questions it stays known how they are joined."""
    found = join(left, right)
    if isinstance(found, Operation) and found.op == "either":
        return replace(found, detail=by)
    questions = (Symbol, Operation)
    certain = any(isinstance(v, Operation) and v.op in ("compare", "not", "%", "either") for v in (left, right))
    if certain and isinstance(left, questions) and isinstance(right, questions) and found == UNKNOWN:
        depth = 1 + max(left.depth, right.depth)
        return Operation("either", (left, right), depth, by) if depth <= 8 else UNKNOWN
    return found


def _compared(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    if isinstance(op, (ast.Is, ast.IsNot)):
        for one, other in ((left, right), (right, left)):
            if other == NONE:
                same = True if one == NONE else False if isinstance(one, _NEVER_NONE) else None
                if isinstance(one, Const) and one.fixed and one.value is not None:
                    same = False
                if same is not None:
                    return same if isinstance(op, ast.Is) else not same
        return None
    if isinstance(op, (ast.In, ast.NotIn)):
        if isinstance(right, Table) and not right.open and isinstance(left, Const) and containers.hashable(left.value):
            return (left.value in right.items) is isinstance(op, ast.In)
        if isinstance(right, Bag) and not right.open and isinstance(left, Const) and left.fixed:
            among = [i.value for i in right.items if isinstance(i, Const) and i.fixed]
            if right.kind in ("list", "tuple", "set") and len(among) == len(right.items):
                return (left.value in among) is isinstance(op, ast.In)
        return None
    function = _COMPARE.get(type(op))
    if function and isinstance(left, Const) and isinstance(right, Const) and left.fixed and right.fixed:
        try:
            return bool(function(left.value, right.value))
        except TypeError:
            return None
    return None


def loop_block(
    node: ast.AST, file: SourceFile, function: FunctionInfo | None, subject: Value | None, count: Value | None
) -> Block:
    """A loop's block."""
    return Block("loop", node, file, function, subject=subject, count=count)
