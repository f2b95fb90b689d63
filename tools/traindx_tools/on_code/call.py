"""Calls: into the project's own functions and classes, and what calls of installed packages give back."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from traindx_tools.on_code import arrays, containers, creation, jax_calls, layers, library, python_calls, torch_calls
from traindx_tools.on_code.arrays import LOSS_CLASSES, LOSSES
from traindx_tools.on_code.definitions import ClassInfo, FunctionInfo
from traindx_tools.on_code.evaluate import Evaluator
from traindx_tools.on_code.frame import Frame
from traindx_tools.on_code.held import parts_held, why_frozen
from traindx_tools.on_code.library import Call
from traindx_tools.on_code.names import canonical, is_array_library, is_optimizer, is_scheduler
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
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    unwrap,
)

_ENTRIES = (python_calls, torch_calls, jax_calls)
"""Importing them fills the registry in `library`."""
MAX_CALL_DEPTH = 12
MAX_RUNS = 12
"""How often one function is run with different arguments in a large project, unless it takes part in training."""
LARGE = 25
"""Files from which on a project counts as large."""
_TRAINING = frozenset(
    {"backward", "manual_backward", "step", "zero_grad", "eval", "train", "unscale_", "load_state_dict"}
)
_CONTEXTS = frozenset(
    {
        "torch.no_grad",
        "torch.inference_mode",
        "torch.enable_grad",
        "torch.set_grad_enabled",
        "torch.amp.autocast",
        "torch.set_default_dtype",
        "contextlib.nullcontext",
        "torch.autograd.set_detect_anomaly",
    }
)
_NO_ARRAYS = (
    "torch.cuda.",
    "torch.distributed.",
    "torch.backends.",
    "torch.utils.",
    "torch.save",
    "torch.load",
    "torch.manual_seed",
    "torch.set_",
    "torch.get_",
    "torch.device",
    "torch.is_",
    "torch.profiler.",
    "torch.multiprocessing.",
    "torch.jit.",
    "torch.Generator",
    "torch.seed",
    "torch.nn.init.",
    "torch.nn.utils.",
    "torch.autograd.",
    "torch.hub.",
    "torch.ops.",
    "torch._",
    "torch.onnx.",
    "torch.export",
    "torch.overrides",
    "torch.fx.",
    "torch.mps.",
    "torch.xpu.",
    "jax.tree",
    "jax.config",
    "jax.devices",
    "jax.local",
    "jax.process",
    "jax.sharding",
    "jax.profiler",
    "jax.debug",
    "jax.experimental",
    "jax.distributed",
    "numpy.testing",
    "numpy.save",
    "numpy.load",
    "optax.adam",
    "optax.sgd",
    "optax.chain",
    "torchvision.",
    "torchaudio.",
    "numpy.random.seed",
    "jax.dtypes",
    "jax.core",
    "jax.lax.axis",
    "optax.apply",
    "optax.clip",
)
_OPTAX_LOSSES = frozenset(
    {
        "softmax_cross_entropy",
        "softmax_cross_entropy_with_integer_labels",
        "sigmoid_binary_cross_entropy",
        "l2_loss",
        "huber_loss",
        "squared_error",
        "safe_softmax_cross_entropy",
    }
)


class Caller(Evaluator):
    """Adds calls. Statements are added by `execute.Interpreter`."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[FunctionInfo] = []
        self.reached: set[int] = set()
        self.callbacks: list[Function] = []
        self.instances: dict[int, list[Instance]] = {}
        self.is_large = False
        self._runs: dict[int, int] = {}
        self._memory: dict[Any, tuple[Value, Block, Any]] = {}

    def run_body(self, statements: list[ast.stmt], frame: Frame) -> None:
        """Execute statements in a frame."""
        raise NotImplementedError

    def set_attribute(self, base: Value, name: str, value: Value, node: ast.AST, frame: Frame) -> None:
        """`base.name = value`."""
        raise NotImplementedError

    # the call expression

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        if isinstance(node.func, ast.Attribute):
            if _is_super(node.func.value):
                return self._super_call(node, node.func.attr, frame)
            receiver = self.evaluate(node.func.value, frame)
            args, kwargs = self._arguments(node, frame)
            return self.call_attribute(receiver, node.func.attr, args, kwargs, node, frame)
        callee = self.evaluate(node.func, frame)
        args, kwargs = self._arguments(node, frame)
        return self.call(callee, args, kwargs, node, frame)

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
        if name == "__init__":
            return NONE
        return self._method(this or UNKNOWN, name, args, kwargs, node, frame)

    def call_attribute(
        self, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame
    ) -> Value:
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

    def _said(
        self,
        name: str,
        receiver: Value | None,
        args: list[Value],
        kwargs: dict[str, Value],
        node: ast.AST,
        frame: Frame,
        result: Value,
    ) -> Value:
        self.event("call", name, node, frame, receiver=receiver, args=tuple(args), kwargs=kwargs, result=result)
        return result

    def _remember_callbacks(self, args: list[Value], kwargs: dict[str, Value]) -> None:
        for value in (*args, *kwargs.values()):
            if isinstance(value, Function):
                self.callbacks.append(value)

    # functions of the project

    def invoke(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame
    ) -> Value:
        """Run a function's body with these arguments, or reuse what an equal call gave."""
        info = function.info
        if function.wrappers and (special := jax_calls.wrapped(self, function, args, kwargs, node, frame)) is not None:
            return special
        if info in self.stack or len(self.stack) >= MAX_CALL_DEPTH or self.fuel < 0:
            return Symbol("call", info.name)
        key = self._key(function, args, kwargs)
        known = self._memory.get(key) if key is not None else None
        if known is not None:
            self.blocks[-1].body.append(known[1])
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

    def _run(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame
    ) -> tuple[Value, Block]:
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
            made.suspends_grad = inner.yield_grad is False and saved_grad is not False
            return made, block
        return (containers.joined(inner.returns) if inner.returns else NONE), block

    def module_of(self, info: FunctionInfo | ClassInfo) -> ModuleValue:
        """The module value of the file in which something is defined."""
        raise NotImplementedError

    @staticmethod
    def _scopes(function: Function) -> tuple[dict[str, Value], ...]:
        return ((function.closure,) if function.closure is not None else ()) + function.closures

    def _key(self, function: Function, args: list[Value], kwargs: dict[str, Value]) -> Any:
        try:
            parts = tuple(_identity(a) for a in args), tuple((k, _identity(v)) for k, v in kwargs.items())
            return (
                id(function.info),
                id(function.closure),
                id(function.owner),
                parts,
                self.grad,
                self.autocast,
                self.differentiated,
            )
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
            elif i >= offset and not spread:
                frame.env[arg.arg] = self._default(spec.defaults[i - offset], function, frame)
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

    def _default(self, node: ast.expr, function: Function, frame: Frame) -> Value:
        outer = Frame(function.info.file, frame.module, None, {}, frame.closures)
        return self.evaluate(node, outer)

    # classes of the project

    def instantiate(
        self, klass: Klass, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame
    ) -> Value:
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
        if init is not None:
            own = init.info.name == "__init__"
            self.invoke(self.bound(init, made), args if own else [], kwargs if own else {}, node, frame)
        return made

    def _call_instance(
        self, callee: Instance, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame
    ) -> Value:
        info = callee.klass.info
        method = info.method("__call__") or (info.method("forward") if info.is_module or info.foreign_bases else None)
        event = self.event(
            "call", f"{info.name}.__call__", node, frame, receiver=callee, args=tuple(args), kwargs=kwargs
        )
        if method is None:
            event.result = self._unknown_output(callee, node, frame)
            return event.result
        result = self.invoke(self.bound(method, callee), args, kwargs, node, frame)
        if info.is_module:
            result = _from_model(result, callee)
        event.result = result
        return result

    def _unknown_output(self, model: Value, node: ast.AST, frame: Frame) -> Value:
        role = "output" if self.grad is not False else "detached output"
        return Symbol(role, str(self.site(node, frame)), model, 1)

    # objects of installed packages

    def _call_thing(
        self, callee: Thing, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame
    ) -> Value:
        if callee.short in LOSS_CLASSES and callee.type.startswith("torch.nn."):
            return self._loss(f"torch.nn.functional.{LOSS_CLASSES[callee.short]}", args, kwargs, node, frame, callee)
        if "wraps" in callee.state:
            event = self.event(
                "call", f"{callee.type}.__call__", node, frame, receiver=callee, args=tuple(args), kwargs=kwargs
            )
            event.result = self.call(unwrap(callee), args, kwargs, node, frame)
            return event.result
        if callee.type == "functools.partial" and callee.args:
            return self.call(callee.args[0], [*callee.args[1:], *args], {**callee.kwargs, **kwargs}, node, frame)
        if callee.type in _CONTEXTS and args and isinstance(args[0], Function):
            return args[0]
        event = self.event(
            "call", f"{callee.type}.__call__", node, frame, receiver=callee, args=tuple(args), kwargs=kwargs
        )
        if callee.short == "Sequential" and (inner := containers.members(callee)) is not None and args:
            value: Value = args[0]
            for layer in inner.items[:60]:
                value = self.call(layer, [value], {}, node, frame)
            event.result = _from_model(value, callee)
        else:
            made = layers.output(callee, args, self.site(node, frame), self.grad)
            event.result = made if made is not None else self._unknown_output(callee, node, frame)
        return event.result

    def _loss(
        self,
        name: str,
        args: list[Value],
        kwargs: dict[str, Value],
        node: ast.AST,
        frame: Frame,
        receiver: Value | None = None,
    ) -> Value:
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        made = arrays.merged(tensors, self.site(node, frame))
        if self.grad is False:
            made = replace(made, grad=False, parents=frozenset())
        elif any(isinstance(a, (Symbol, Operation)) for a in args) and made.grad is False:
            made = replace(made, grad=None)
        positive = name.rpartition(".")[2] in ("mse_loss", "l1_loss", "smooth_l1_loss")
        made = replace(made, low=0.0 if positive else None, tags=frozenset({"reduced"}))
        return self._said(name, receiver, args, kwargs, node, frame, made)

    def _foreign(self, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame) -> Value:
        call = Call(name, None, tuple(args), kwargs, node, frame)
        handler = library.FUNCTIONS.get(name) or jax_calls.FUNCTIONS.get(name)
        if handler is not None and (found := handler(self, call)) is not None:
            return self._said(name, None, args, kwargs, node, frame, found)
        marked = library.transformed(name, call.args)
        if marked is not None:
            return self._said(name, None, args, kwargs, node, frame, marked)
        last = name.rpartition(".")[2]
        if last in LOSSES or (name.startswith("optax.") and last in _OPTAX_LOSSES):
            return self._loss(name, args, kwargs, node, frame)
        if last[:1].isupper() or name in _CONTEXTS or is_scheduler(name) or name in jax_calls.FACTORIES:
            self.created += 1
            made = Thing(name, call.args, kwargs, self.site(node, frame), node, {}, self.loops)
            if is_optimizer(name):
                made.state.update(frozen_when_built=why_frozen(made), held_parts=parts_held(made))
            if "torch.nn." in name and any(isinstance(a, Function) for a in args):
                self._remember_callbacks(args, kwargs)
            return self._said(name, None, args, kwargs, node, frame, made)
        self._remember_callbacks(args, kwargs)
        return self._said(name, None, args, kwargs, node, frame, self._array_result(call))

    def _array_result(self, call: Call) -> Value:
        last, site = call.name.rpartition(".")[2], self.site(call.node, call.frame)
        if not is_array_library(call.name) or call.name.startswith(_NO_ARRAYS):
            return Symbol("call", f"{call.name}@{site}")
        made = creation.created(last, call.args, call.kwargs, site)
        if made is not None:
            return made
        if last in ("cat", "concatenate", "stack", "hstack", "vstack", "concat"):
            return self._concatenated(call)
        values = [*call.args, *call.kwargs.values()]
        tensors = [v for v in values if isinstance(v, Tensor)]
        unknown = any(isinstance(v, (Symbol, Operation)) for v in values)
        if not tensors and not unknown:
            return Tensor(grad=None if values else False, site=site)
        x = call.first if isinstance(call.first, Tensor) else tensors[0] if tensors else Tensor(site=None)
        args = call.args[1:] if call.args else ()
        if not isinstance(call.first, Tensor) and tensors and call.args:
            return replace(arrays.merged(tensors, site), grad=_maybe(arrays.merged(tensors, site).grad))
        if (
            last in ("max", "min", "topk", "sort", "kthvalue")
            and call.name.startswith("torch.")
            and _has_dim(call.args[1:], call.kwargs)
        ):
            return self._with_indices(last, x, args, call.kwargs, site)
        if last in ("matmul", "mm", "bmm", "dot", "einsum"):
            return (
                self.combine("@", x, args[0], call.node, call.frame)
                if last != "einsum" and args
                else arrays.merged([x], site)
            )
        return arrays.transferred(last, x, args, call.kwargs, site, self.grad)

    def _with_indices(self, name: str, x: Tensor, args: tuple[Value, ...], kwargs: dict[str, Value], site: Any) -> Bag:
        values = arrays.transferred(name if name in arrays.TRANSFERS else "max", x, args, kwargs, site, self.grad)
        return Bag("minmax", [values, Tensor(grad=False, shape=values.shape, dtype="int", tags=frozenset({"integer"}))])

    def _concatenated(self, call: Call) -> Value:
        site = self.site(call.node, call.frame)
        items = call.first.items if isinstance(call.first, Bag) else []
        tensors = [i for i in items if isinstance(i, Tensor)]
        if not tensors:
            return Tensor(site=site)
        shape = tensors[0].shape
        stacked = call.name.endswith("stack")
        if shape is not None and shape.exact and len(tensors) == len(items):
            dims = (None, *shape.dims) if stacked else (None, *shape.dims[1:])
            zero = call.get(1, "dim") in (None, Const(0)) and "axis" not in call.kwargs
            shape = replace(shape, dims=dims) if zero and (stacked or shape.dims) else None
        else:
            shape = None
        lows = [t.low for t in tensors]
        made = arrays.merged(tensors, site)
        low = None if None in lows else min(low for low in lows if low is not None)
        return replace(made, shape=shape, low=low, tags=tensors[0].tags & {"batch"})

    # methods of what is not of the project

    def _method(
        self, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame
    ) -> Value:
        full = f"{library.method_of(receiver)}.{name}"
        call = Call(full, receiver, tuple(args), kwargs, node, frame)
        if isinstance(receiver, Tensor):
            result = self._tensor_method(receiver, name, call)
            return self._said(f"Tensor.{name}", receiver, args, kwargs, node, frame, result)
        handler = library.METHODS.get(name)
        found = handler(self, call) if handler is not None else None
        if found is None:
            found = self._other_method(receiver, name, call)
        return self._said(full, receiver, args, kwargs, node, frame, found)

    def _tensor_method(self, x: Tensor, name: str, call: Call) -> Value:
        site = self.site(call.node, call.frame)
        if name in ("item", "tolist"):
            return Operation("item", (Symbol("number", str(site)),))
        if name == "backward":
            return NONE
        if name == "numpy":
            return replace(x, grad=False, parents=frozenset())
        if name in ("size", "dim", "numel", "nelement", "ndimension", "element_size", "data_ptr", "stride"):
            at = call.args[0] if call.args else None
            if name == "size" and x.shape is not None and x.shape.exact and at is not None:
                dims = Bag(
                    "tuple", [Symbol("size", str(i)) if d is None else Const(d) for i, d in enumerate(x.shape.dims)]
                )
                return containers.item(dims, at, ast.Constant(0))
            return Symbol("size", f"{site}:{getattr(at, 'value', '')}")
        if name in ("max", "min", "topk", "sort") and _has_dim(call.args, call.kwargs):
            return self._with_indices(name, x, call.args, call.kwargs, site)
        if name in ("split", "chunk", "unbind", "tensor_split"):
            part = arrays.transferred("split", x, call.args, call.kwargs, site, self.grad)
            if (
                name != "unbind"
                and x.shape is not None
                and x.shape.exact
                and "dim" not in call.kwargs
                and len(call.args) < 2
            ):
                part = replace(part, shape=replace(x.shape, dims=(None, *x.shape.dims[1:])))
            return Bag("tuple", [part], open=True)
        if name in ("matmul", "mm", "bmm") and call.args:
            return self.combine("@", x, call.args[0], call.node, call.frame)
        if (
            name in ("add", "sub", "mul", "div", "add_", "mul_", "sub_", "div_")
            and call.args
            and "alpha" not in call.kwargs
        ):
            op = {"add": "+", "sub": "-", "mul": "*", "div": "/"}[name.rstrip("_")]
            return self.combine(op, x, call.args[0], call.node, call.frame)
        return arrays.transferred(name, x, call.args, call.kwargs, site, self.grad)

    def _other_method(self, receiver: Value, name: str, call: Call) -> Value:
        if name == "step" and call.args and isinstance(call.args[0], Function):
            return self.call(call.args[0], [], {}, call.node, call.frame)  # LBFGS and SAM call a closure
        self._remember_callbacks(list(call.args), call.kwargs)
        if isinstance(receiver, Instance):
            return self._module_registry(receiver, name, call)
        if isinstance(receiver, Symbol):
            return Symbol("call", f"{name}@{self.site(call.node, call.frame)}", receiver, min(receiver.depth + 1, 6))
        if isinstance(receiver, Parameters) or (isinstance(receiver, Bag) and name in ("index", "count")):
            return UNKNOWN
        if isinstance(receiver, Thing):
            if receiver.type == "numpy.random.default_rng" or "random" in receiver.type.lower():
                return creation.created(name, call.args, call.kwargs, self.site(call.node, call.frame)) or UNKNOWN
            return Symbol("call", f"{name}@{self.site(call.node, call.frame)}", receiver, 1)
        if isinstance(receiver, Const):
            return Symbol("call", name)
        return UNKNOWN

    def _module_registry(self, receiver: Instance, name: str, call: Call) -> Value:
        key = call.args[0] if call.args else None
        if (
            name in ("register_buffer", "register_parameter", "add_module", "register_module")
            and len(call.args) > 1
            and (isinstance(key, Const) and isinstance(key.value, str))
        ):
            value = call.args[1]
            receiver.attrs[key.value] = (
                replace(value, grad=False) if (name == "register_buffer" and isinstance(value, Tensor)) else value
            )
            return NONE
        if name in ("modules", "children", "named_modules", "named_children"):
            found = library.submodules(receiver)[1:40]
            made: list[Value] = [m for m in found if isinstance(m, (Thing, Instance))]
            if name.startswith("named"):
                made = [Bag("tuple", [Symbol("key", "name"), m]) for m in made]
            return Bag("generator", made[:1] if len({_kind(m) for m in made}) == 1 else [], open=True)
        if name == "apply" and call.args and receiver.klass.info.is_module:
            return self._call_instance(receiver, list(call.args[1:]), call.kwargs, call.node, call.frame)
        return Symbol("call", f"{name}@{self.site(call.node, call.frame)}", receiver, 1)


def _kind(value: Value) -> Any:
    return value.type if isinstance(value, Thing) else id(value)


def _maybe(grad: bool | None) -> bool | None:
    return True if grad else None


def _has_dim(args: tuple[Value, ...], kwargs: dict[str, Value]) -> bool:
    """Whether a reduction of torch is given a dimension and so returns values with indices."""
    return "dim" in kwargs or (bool(args) and isinstance(args[0], (Const, Symbol, Operation)) and "axis" not in kwargs)


def _identity(value: Value) -> Any:
    if isinstance(value, Bag):
        return id(value), len(value.items), value.open
    if isinstance(value, Table):
        return id(value), len(value.items), id(value.rest)
    if isinstance(value, (Tensor, Symbol, Const, Operation, Ref)):
        hash(value)
        return value
    return id(value)


def _from_model(value: Value, model: Instance | Thing) -> Value:
    if isinstance(value, Tensor):
        return replace(value, models=value.models | {id(model)})
    if isinstance(value, Bag) and value.kind in ("tuple", "list"):
        return Bag(value.kind, [_from_model(v, model) for v in value.items], value.open, value.site, value.born_in)
    return value


def _fields(info: ClassInfo, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    """What a dataclass, a NamedTuple or a flax module stores of its arguments."""
    if not (info.is_dataclass or info.derives("NamedTuple", "PyTreeNode") or "flax.linen.Module" in info.foreign_bases):
        return {}
    names = [
        s.target.id
        for c in reversed(list(info.lineage()))
        for s in c.node.body
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
    ]
    made: dict[str, Value] = dict(zip(names, args, strict=False))
    made.update({k: v for k, v in kwargs.items() if k in names})
    return made


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
