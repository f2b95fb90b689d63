"""Calls into the project's own functions and classes."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from traindx_tools.on_code import containers, jax_calls, library
from traindx_tools.on_code.axes import of, ranked
from traindx_tools.on_code.axis_calls import given_to
from traindx_tools.on_code.definitions import ClassInfo, FunctionInfo
from traindx_tools.on_code.descriptions import Axes
from traindx_tools.on_code.interpreter import Call, Frame
from traindx_tools.on_code.library_calls import Foreign, from_model
from traindx_tools.on_code.names import canonical
from traindx_tools.on_code.nodes import last_name
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.unread import TELLING
from traindx_tools.on_code.values import (
    LAYERS,
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
    Ref,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    truth,
    unwrap,
)

MAX_CALL_DEPTH = 12
MAX_RUNS = 12
"""How often one function is run with different arguments in a large project, unless it takes part in training."""
LARGE = 25
"""Files from which on a project counts as large."""
_TRAINING = frozenset({"backward", "manual_backward", "step", "zero_grad", "eval", "train", "unscale_",
    "load_state_dict"})
_ADDING = frozenset({"append", "extend", "add", "insert", "appendleft"})


class Caller(Foreign):
    """Adds calls of the project's own code. Statements are added by the classes that derive from it."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[FunctionInfo] = []
        self.instances: dict[int, list[Instance]] = {}
        self.is_large = False
        self._runs: dict[int, int] = {}
        self._memory: dict[Any, tuple[Value, Block, Any]] = {}

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        if not self.unread.held:
            return self._called(node, frame)
        name, of = last_name(node.func), getattr(node.func, "value", None)
        empties = name == "clear" and not node.args
        self.unread.quiet += empties or name in TELLING
        value = self._called(node, frame)
        if empties and isinstance(of, (ast.Name, ast.Attribute)):
            home = frame if isinstance(of, ast.Name) else self.evaluate(of.value, frame)
            self.unread.empty(last_name(of), home, self.place(node, frame))
        self.unread.quiet -= empties or name in TELLING
        return value

    def _called(self, node: ast.Call, frame: Frame) -> Value:
        if isinstance(node.func, ast.Attribute):
            if _is_super(node.func.value):
                return self._super_call(node, node.func.attr, frame)
            receiver = self.evaluate(node.func.value, frame)
            args, kwargs = self._arguments(node, frame)
            if either := self._either(node.func, frame):
                self.call_attribute(either[0], node.func.attr, args, kwargs, node, frame)
                receiver = either[1]
            return self.call_attribute(receiver, node.func.attr, args, kwargs, node, frame)
        callee = self.evaluate(node.func, frame)
        args, kwargs = self._arguments(node, frame)
        return self.call(callee, args, kwargs, node, frame)

    def _either(self, called: ast.Attribute, frame: Frame) -> list[Value]:
        """Both lists of `(a if chosen else b).append(x)`, where the choice is not known: x may be in either."""
        chosen = called.value
        if not isinstance(chosen, ast.IfExp) or called.attr not in _ADDING:
            return []
        if truth(self.evaluate(chosen.test, frame)) is not None:
            return []
        both = [self.evaluate(side, frame) for side in (chosen.body, chosen.orelse)]
        return both if all(isinstance(side, Bag) for side in both) else []

    def _arguments(self, node: ast.Call, frame: Frame) -> tuple[list[Value], dict[str, Value]]:
        args: list[Value] = []
        kwargs: dict[str, Value] = {}
        for arg in node.args:
            value = self.evaluate(arg, frame)
            if isinstance(arg, ast.Starred):
                if isinstance(value, Bag) and not value.open and len(value.items) <= 20:
                    args.extend(value.items)
                    continue
                kwargs["*"] = self.element(value, node, frame)
                if isinstance(value, Bag) and value.open:
                    args.append(value)
                continue
            args.append(value)
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, frame)
            if keyword.arg is not None:
                kwargs[keyword.arg] = value
            elif isinstance(value, Table) and not value.open:
                kwargs.update({str(k): v for k, v in value.items.items()})
            else:
                kwargs["**"] = value
        return args, kwargs

    def _super_call(self, node: ast.Call, name: str, frame: Frame) -> Value:
        args, kwargs = self._arguments(node, frame)
        this = frame.env.get("self") or next((e["self"] for e in frame.closures if "self" in e), None)
        if isinstance(this, Instance) and frame.owner is not None:
            found = this.klass.info.method(name, after=frame.owner)
            if found is not None:
                return self.invoke(self.bound(found, this), args, kwargs, node, frame)
        if isinstance(this, Instance) and this.klass.info.derives("Sequential"):
            if name == "__init__":
                this.attrs[LAYERS] = Thing("torch.nn.Sequential", tuple(args), kwargs, self.site(node, frame), node,
                                           {}, self.loops)
            elif name in ("forward", "__call__") and LAYERS in this.attrs:
                return self.call(this.attrs[LAYERS], args, kwargs, node, frame)
        if name == "__init__":
            return NONE
        return self._method(this or UNKNOWN, name, args, kwargs, node, frame)

    def call_attribute(self, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
            frame: Frame) -> Value:
        """`receiver.name(...)`."""
        if isinstance(receiver, Ref):
            if name in library.METHODS and name in ("from_pretrained", "from_config"):
                found = library.METHODS[name](self, Call(name, receiver, tuple(args), kwargs, node, frame))
                return self._said(f"{receiver.name}.{name}", receiver, args, kwargs, node, frame, found or UNKNOWN)
            return self.call(containers.constant_of(canonical(f"{receiver.name}.{name}")), args, kwargs, node, frame)
        if isinstance(receiver, (Instance, Klass, ModuleValue)):
            found = self.attribute(receiver, name, node, frame)
            if not isinstance(found, Method):
                return self.call(found, args, kwargs, node, frame)
        if isinstance(receiver, Thing) and receiver.type == "flax.TrainState" and name in receiver.kwargs:
            return self.call(receiver.kwargs[name], args, kwargs, node, frame)
        if isinstance(receiver, Klass) and name == "create" and receiver.info.derives("TrainState"):
            state = Thing("flax.TrainState", (), kwargs, self.site(node, frame), node, {}, self.loops)
            return self._said("flax.TrainState.create", receiver, args, kwargs, node, frame, state)
        if isinstance(receiver, Thing) and name == "module" and "wraps" in receiver.state:
            return self.call(unwrap(receiver), args, kwargs, node, frame)
        if isinstance(receiver, Thing) and name in receiver.state.get("attrs", {}):
            return self.call(receiver.state["attrs"][name], args, kwargs, node, frame)
        return self._method(receiver, name, args, kwargs, node, frame)

    def call(self, callee: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame) -> Value:
        """The result of calling any value."""
        if isinstance(callee, Function):
            return self.invoke(callee, args, kwargs, node, frame)
        if isinstance(callee, Ref):
            return self._foreign(callee.name, args, kwargs, node, frame)
        if isinstance(callee, Klass):
            return self.instantiate(callee, args, kwargs, node, frame)
        if isinstance(callee, Instance):
            return self._call_instance(callee, args, kwargs, node, frame)
        if isinstance(callee, Thing):
            return self._call_thing(callee, args, kwargs, node, frame)
        if isinstance(callee, Method):
            return self._method(callee.receiver, callee.name, args, kwargs, node, frame)
        self._remember_callbacks(args, kwargs)
        result = callee.child("call", "") if isinstance(callee, Symbol) else UNKNOWN
        if isinstance(result, Symbol) and isinstance(callee, Symbol):
            result = Symbol("call", str(self.site(node, frame)), callee, min(callee.depth + 1, 6))
        return self._said("?.__call__", callee, args, kwargs, node, frame, result)

    def invoke(self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
            frame: Frame) -> Value:
        """Run a function's body with these arguments, or reuse what an equal call gave."""
        info = function.info
        if function.wrappers and (special := jax_calls.wrapped(self, function, args, kwargs, node, frame)) is not None:
            return special
        if info in self.stack or len(self.stack) >= MAX_CALL_DEPTH or self.fuel < 0:
            return Symbol("call", info.name)
        key = self._key(function, args, kwargs)
        known = self._memory.get(key) if key is not None else None
        if known is not None and not (self.unread.held and self.unread.concern(known[1])):
            block = known[1]
            if block.node is info.node:  # followed before as an entry of its own
                block = replace(block, node=node, file=frame.file)
            self.blocks[-1].body.append(block)
            return known[0]
        if self._tired(info):
            return Symbol("call", info.name)
        before = self.created
        value, block = self._run(function, args, kwargs, node, frame)
        self._note_run(info, block)
        if key is not None and self.created == before:
            self._memory[key] = (value, block, (function, args, kwargs))
        return value

    def _tired(self, info: FunctionInfo) -> bool:
        runs = self._runs.get(id(info), 0)
        return self.is_large and runs >= MAX_RUNS

    def _note_run(self, info: FunctionInfo, block: Block) -> None:
        if self.is_large:
            trains = any(isinstance(i, Event) and i.method in _TRAINING for i in block.body)
            self._runs[id(info)] = self._runs.get(id(info), 0) + (0 if trains else 1)

    def _run(self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
            frame: Frame) -> tuple[Value, Block]:
        info = function.info
        self.reached.add(id(info.node))
        block = Block("call", node, frame.file, info, subject=function)
        self.blocks[-1].body.append(block)
        inner = Frame(info.file, self.module_of(info), info, {}, self._scopes(function))
        saved_grad, saved_depth = self.grad, self._depth
        self.blocks.append(block)
        self.stack.append(info)
        self._depth = 0
        if info.grad is not None:
            self.grad = info.grad
        try:
            self._bind(function, args, kwargs, inner)
            self.run_body(info.statements, inner)
        finally:
            self.grad, self._depth = saved_grad, saved_depth
            self.stack.pop()
            self.blocks.pop()
        if info.is_generator:
            made = Bag("generator", [containers.joined(inner.yields)] if inner.yields else [], open=True)
            made.size = inner.yield_count
            made.suspends_grad = inner.yield_grad is False and saved_grad is not False
            return made, block
        block.result = containers.joined(inner.returns) if inner.returns else NONE
        return block.result, block

    @staticmethod
    def _scopes(function: Function) -> tuple[dict[str, Value], ...]:
        return ((function.closure,) if function.closure is not None else ()) + function.closures

    def _key(self, function: Function, args: list[Value], kwargs: dict[str, Value]) -> Any:
        try:
            parts = tuple(_identity(a) for a in args), tuple((k, _identity(v)) for k, v in kwargs.items())
            return (id(function.info), id(function.closure), id(function.owner), parts, self.grad, self.autocast,
                self.differentiated, self.assumes)
        except TypeError:  # a constant that cannot be hashed
            return None

    def _bind(self, function: Function, args: list[Value], kwargs: dict[str, Value], frame: Frame) -> None:
        spec = function.info.node.args
        positional = [*spec.posonlyargs, *spec.args]
        given = list(args)
        if function.owner is not None and not function.info.is_static:
            given.insert(0, function.owner)
        rest = dict(kwargs)
        spread = rest.pop("*", None) is not None or "**" in rest
        unknown = rest.pop("**", None)
        offset = len(positional) - len(spec.defaults)
        for i, arg in enumerate(positional):
            if i < len(given):
                frame.env[arg.arg] = given[i]
            elif arg.arg in rest:
                frame.env[arg.arg] = rest.pop(arg.arg)
            elif i >= offset and (not spread or isinstance(spec.defaults[i - offset], ast.Constant)):
                value = self._default(spec.defaults[i - offset], function, frame)
                frame.env[arg.arg] = Const(value.value, False) if spread and isinstance(value, Const) else value
            else:
                frame.env[arg.arg] = Symbol("parameter", arg.arg)
        if spec.vararg:
            frame.env[spec.vararg.arg] = Bag("tuple", given[len(positional) :], spread)
        for arg, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=False):
            if arg.arg in rest:
                frame.env[arg.arg] = rest.pop(arg.arg)
            elif default is not None and not spread:
                frame.env[arg.arg] = self._default(default, function, frame)
            else:
                frame.env[arg.arg] = Symbol("parameter", arg.arg)
        if spec.kwarg:
            frame.env[spec.kwarg.arg] = Table(dict(rest), open=unknown is not None)
        for name, rank in function.info.said_ranks.items():
            dims = ranked(of(frame.env[name]), rank)
            frame.env[name] = given_to(frame.env[name], Axes(tuple(dims))) if dims is not None else frame.env[name]

    def _default(self, node: ast.expr, function: Function, frame: Frame) -> Value:
        outer = Frame(function.info.file, frame.module, None, {}, frame.closures)
        return self.evaluate(node, outer)

    def instantiate(self, klass: Klass, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
            frame: Frame) -> Value:
        """An object of a project's class; its `__init__` is run."""
        info = klass.info
        if info.derives("Enum", "IntEnum", "StrEnum", "Exception", "ValueError", "RuntimeError"):
            return Symbol("call", info.name)
        made = Instance(klass, self.site(node, frame), node, born_in=self.loops, args=tuple(args), kwargs=dict(kwargs))
        self.created += 1
        self.instances.setdefault(id(info), []).append(made)
        for name, value in _fields(info, args, kwargs).items():
            made.attrs[name] = value
        init = info.method("__init__") or info.method("setup" if info.derives("nn.Module") else "__post_init__")
        self._said(f"{info.name}.__new__", klass, args, kwargs, node, frame, made)
        if init is None and info.derives("Sequential"):
            made.attrs[LAYERS] = Thing("torch.nn.Sequential", tuple(args), kwargs, made.site, node, {}, self.loops)
        if init is not None:
            own = init.info.name == "__init__"
            self.invoke(self.bound(init, made), args if own else [], kwargs if own else {}, node, frame)
        return made

    def _call_instance(self, callee: Instance, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
            frame: Frame) -> Value:
        info = callee.klass.info
        method = info.method("__call__") or (info.method("forward") if info.is_module or info.foreign_bases else None)
        event = self.event("call", f"{info.name}.__call__", node, frame, receiver=callee, args=tuple(args),
            kwargs=kwargs)
        if method is None and LAYERS not in callee.attrs:
            event.result = self._unknown_output(callee, node, frame)
            return event.result
        if method is None:
            result = self.call(callee.attrs[LAYERS], args, kwargs, node, frame)
        else:
            result = self.invoke(self.bound(method, callee), args, kwargs, node, frame)
        if info.is_module:
            result = from_model(result, callee)
        event.result = result
        return result


def _identity(value: Value) -> Any:
    if isinstance(value, Bag):
        return id(value), len(value.items), value.open
    if isinstance(value, Table):
        return id(value), len(value.items), id(value.rest)
    if isinstance(value, (Tensor, Symbol, Const, Operation, Ref)):
        hash(value)
        return value
    return id(value)


def _fields(info: ClassInfo, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    """What a dataclass, a NamedTuple or a flax module stores of its arguments."""
    if not (info.is_dataclass or info.derives("NamedTuple", "PyTreeNode") or "flax.linen.Module" in info.foreign_bases):
        return {}
    names = [s.target.id for c in reversed(list(info.lineage())) for s in c.node.body if isinstance(s, ast.AnnAssign)
        and isinstance(s.target, ast.Name)]
    made: dict[str, Value] = dict(zip(names, args, strict=False))
    made.update({k: v for k, v in kwargs.items() if k in names})
    return made


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
