"""Calls of what is not of the project: objects, functions and methods of installed packages."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from traindx_tools.knowledge.names import (
    CONTEXTS,
    LOSS_CLASSES,
    LOSSES,
    MODEL_FACTORIES,
    NO_ARRAYS,
    OPTAX_LOSSES,
    SQUASHES,
)
from traindx_tools.knowledge.tables import words
from traindx_tools.on_code import (
    arrays,
    axes,
    axis_calls,
    axis_layers,
    collection_calls,
    containers,
    gradient_tests,
    jax_calls,
    layers,
    library,
    mask_truth,
    operators,
    python_calls,
    quantities,
    torch_calls,
)
from traindx_tools.on_code.descriptions import Axes
from traindx_tools.on_code.evaluate import Evaluator
from traindx_tools.on_code.interpreter import Call, Frame
from traindx_tools.on_code.names import is_array_library, is_optimizer, is_scheduler
from traindx_tools.on_code.optimizer_parameters import frozen_parts, iterators, parts_held, why_frozen
from traindx_tools.on_code.tensors import merged
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.unread import LOADERS, is_put
from traindx_tools.on_code.values import (
    NONE,
    UNKNOWN,
    Bag,
    Const,
    Function,
    Instance,
    Operation,
    Parameters,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    integer,
    unwrap,
)

_ENTRIES = (python_calls, collection_calls, torch_calls, jax_calls)
"""Importing them fills the registry in `library`."""
_ELEMENTWISE = words("axes.toml", "elementwise_losses")
_SIDES = words("axes.toml", "equal_sides") | words("axes.toml", "class_ids")
_ANSWERS = frozenset({gradient_tests.FINITE, gradient_tests.NONFINITE})


class Foreign(Evaluator):
    """Adds calls of installed packages to the evaluator."""

    def __init__(self) -> None:
        super().__init__()
        self.callbacks: list[Function] = []
        self.handed: list[Event] = []
        """Where a model is handed to a trainer of a library."""
        self.reached: set[int] = set()

    def _call_instance(self, callee: Instance, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
            frame: Frame) -> Value:
        raise NotImplementedError

    def _said(self, name: str, receiver: Value | None, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
            frame: Frame, result: Value) -> Value:
        event = self.event("call", name, node, frame, receiver=receiver, args=tuple(args), kwargs=kwargs, result=result)
        if name == "transformers.Trainer" or name.endswith(".fit"):
            self.handed.append(event)
        self.unread.on = self.unread.on or event.method in LOADERS
        if self.unread.on and is_put(event.method, args):
            self.unread.put_in(receiver, self.place(node, frame))
        return result

    def _remember_callbacks(self, args: list[Value], kwargs: dict[str, Value]) -> None:
        for value in (*args, *kwargs.values()):
            if isinstance(value, Function):
                self.callbacks.append(value)

    def _unknown_output(self, model: Value, node: ast.AST, frame: Frame) -> Value:
        role = "output" if self.grad is not False else "detached output"
        return Symbol(role, str(self.site(node, frame)), model, 1)

    def _call_thing(self, callee: Thing, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
            frame: Frame) -> Value:
        if callee.short in LOSS_CLASSES and callee.type.startswith("torch.nn."):
            return self._loss(f"torch.nn.functional.{LOSS_CLASSES[callee.short]}", args, kwargs, node, frame, callee)
        if "wraps" in callee.state:
            event = self.event("call", f"{callee.type}.__call__", node, frame, receiver=callee, args=tuple(args),
                kwargs=kwargs)
            event.result = self.call(unwrap(callee), args, kwargs, node, frame)
            return event.result
        if callee.type == "functools.partial" and callee.args:
            return self.call(callee.args[0], [*callee.args[1:], *args], {**callee.kwargs, **kwargs}, node, frame)
        if callee.type in CONTEXTS and args and isinstance(args[0], Function):
            return args[0]
        if callee.type == "collections.namedtuple":
            row = dict(zip(callee.state["fields"], args, strict=False))
            return Bag("tuple", args, open=True) if "*" in kwargs else Table({**row, **kwargs}, born_in=self.loops)
        event = self.event("call", f"{callee.type}.__call__", node, frame, receiver=callee, args=tuple(args),
            kwargs=kwargs)
        if callee.short == "Sequential" and (inner := containers.members(callee)) is not None and args:
            value: Value = args[0]
            for layer in inner.items[:60]:
                if not self.spend(node, frame):
                    break
                value = self.call(layer, [value], {}, node, frame)
            event.result = from_model(value, callee)
        else:
            made = layers.output(callee, args, self.site(node, frame), self.grad)
            made = made if made is not None else self._unknown_output(callee, node, frame)
            known = axis_layers.layer(callee, args, event.site)
            if callee.type.startswith("transformers."):
                known = axes.of(kwargs.get("input_ids") or kwargs.get("pixel_values") or next(iter(args), None))
            self.note_rank(callee, args)
            self.note_steps(callee, args, node, frame)
            event.result = axis_calls.given_to(made, known)
        return event.result

    def _loss(self, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame,
            receiver: Value | None = None) -> Value:
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        made = merged(tensors, self.site(node, frame))
        if self.grad is False:
            made = replace(made, grad=False, parents=frozenset())
        elif any(isinstance(a, (Symbol, Operation)) for a in args) and made.grad is False:
            made = replace(made, grad=None)
        positive = name.rpartition(".")[2] in ("mse_loss", "l1_loss", "smooth_l1_loss")
        tags = frozenset({"reduced", "loss"}) | quantities.slopes(tensors)
        said = (receiver.kwargs if isinstance(receiver, Thing) else kwargs).get("reduction")
        optax = name.startswith("optax.") or (isinstance(said, Const) and said.value == "none")
        both = axes.broadcast(*(axes.of(a) for a in args[:2])) if optax and len(args) > 1 else None
        made = replace(made, low=0.0 if positive else None, tags=tags, axes=both if optax else axes.SCALAR)
        if name.rpartition(".")[2] in _ELEMENTWISE:
            self.note_clash(name.rpartition(".")[2], args, node, frame)
        self.note_call(name.rpartition(".")[2], args, {}, node, frame)
        if len(args) > 1 and name.rpartition(".")[2] in _SIDES:
            self.note_sides(name.rpartition(".")[2], args)
        return self._said(name, receiver, args, kwargs, node, frame, made)

    def _foreign(self, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST, frame: Frame) -> Value:
        call = Call(name, None, tuple(args), kwargs, node, frame)
        handler = library.FUNCTIONS.get(name)
        if handler is not None and (found := handler(self, call)) is not None:
            return self._said(name, None, args, kwargs, node, frame, found)
        marked = library.transformed(name, call.args, kwargs)
        if marked is not None:
            return self._said(name, None, args, kwargs, node, frame, marked)
        last = name.rpartition(".")[2]
        if last in LOSSES or (name.startswith("optax.") and last in OPTAX_LOSSES):
            return self._loss(name, args, kwargs, node, frame)
        pretrained = name.startswith(MODEL_FACTORIES)
        if last[:1].isupper() or pretrained or name in CONTEXTS or is_scheduler(name) or (
                name in jax_calls.FACTORIES or name.startswith("optax.scale_by_")):
            self.created += 1
            made = Thing(name, call.args, kwargs, self.site(node, frame), node, {}, self.loops)
            self.note_cut(made, node, frame)
            if is_optimizer(name):
                certain = not any(b.kind == "branch" for b in self.blocks)
                spent = [p.spend(made.site, certain) for p in iterators(made)]
                made.state.update(
                    used_up=next((s for s in spent if s is not None), None), frozen_when_built=why_frozen(made),
                    held_parts=parts_held(made), frozen_parts=frozen_parts(made)
                )
            if last in ("LambdaLR", "MultiplicativeLR"):
                made.state.update(operators.shape_of(self, call, call.get(1, "lr_lambda")))
            if pretrained:
                made.state["pretrained"] = True
            if "torch.nn." in name and any(isinstance(a, Function) for a in args):
                self._remember_callbacks(args, kwargs)
            return self._said(name, None, args, kwargs, node, frame, made)
        self._remember_callbacks(args, kwargs)
        self.note_call(last, args, kwargs, node, frame)
        made_of = axis_calls.called(last, args, kwargs, self.site(node, frame))
        return self._said(name, None, args, kwargs, node, frame, axis_calls.given_to(self._array_result(call), made_of))

    def _array_result(self, call: Call) -> Value:
        last, site = call.name.rpartition(".")[2], self.site(call.node, call.frame)
        if not is_array_library(call.name) or call.name.startswith(NO_ARRAYS):
            return Symbol("call", f"{call.name}@{site}")
        made = arrays.created(last, call.args, call.kwargs, site)
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
            return replace(merged(tensors, site), grad=_maybe(merged(tensors, site).grad))
        if (last in ("max", "min", "topk", "sort", "kthvalue") and call.name.startswith("torch.")
                and _has_dim(call.args[1:], call.kwargs)):
            return self._with_indices(last, x, args, call.kwargs, site)
        if last == "bmm":
            self.note_ranks(3, call.args)
        if last in ("matmul", "mm", "bmm", "dot", "einsum"):
            return (self.combine("@", x, args[0], call.node, call.frame) if last != "einsum" and args
                else merged([x], site))
        return arrays.transferred(last, x, args, call.kwargs, site, self.grad)

    def _with_indices(self, name: str, x: Tensor, args: tuple[Value, ...], kwargs: dict[str, Value], site: Any) -> Bag:
        values = arrays.transferred(name if name in arrays.TRANSFERS else "max", x, args, kwargs, site, self.grad)
        return Bag("minmax", [values, Tensor(grad=False, dtype="int", tags=frozenset({"integer"}))])

    def _concatenated(self, call: Call) -> Value:
        site = self.site(call.node, call.frame)
        items = call.first.items if isinstance(call.first, Bag) else []
        tensors = [i for i in items if isinstance(i, Tensor)]
        if not tensors:
            return Tensor(site=site)
        lows = [t.low for t in tensors]
        made = merged(tensors, site)
        low = None if None in lows else min(low for low in lows if low is not None)
        signs = frozenset({"log_prob"}) if all("log_prob" in t.tags for t in tensors) else frozenset()
        return replace(made, low=low, tags=tensors[0].tags & {"batch"} | signs | mask_truth.joined(tensors)
                       | quantities.joined(tensors if len(tensors) == len(items) else []))

    def _method(self, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST,
            frame: Frame) -> Value:
        full = f"{library.method_of(receiver)}.{name}"
        call = Call(full, receiver, tuple(args), kwargs, node, frame)
        if isinstance(receiver, Tensor):
            result = self._tensor_method(receiver, name, call)
            self.note_call(name, [receiver, *args], kwargs, node, frame)
            if name not in ("size", "item", "tolist"):
                result = axis_calls.given_to(result, axis_calls.called(name, [receiver, *args], kwargs, call.site))
            return self._said(f"Tensor.{name}", receiver, args, kwargs, node, frame, result)
        handler = library.METHODS.get(name)
        found = handler(self, call) if handler is not None else None
        if found is None:
            found = self._other_method(receiver, name, call)
        result = self._said(full, receiver, args, kwargs, node, frame, found)
        for one in (receiver, *args[:1]) if name == "step" else ():  # of a scaler: the optimizer that it is given
            for hook in one.state.get("after_step", ()) if isinstance(one, Thing) else ():
                self.call(hook, [one, UNKNOWN, UNKNOWN], {}, node, frame)
        return result

    def _tensor_method(self, x: Tensor, name: str, call: Call) -> Value:
        site = self.site(call.node, call.frame)
        if name in ("item", "tolist"):
            return x if x.tags & _ANSWERS else gradient_tests.number_of(replace(x, site=site))
        if name == "backward":
            return NONE
        if name == "numpy":
            return replace(x, grad=False, parents=frozenset())
        if name in ("size", "dim", "numel", "nelement", "ndimension", "element_size", "data_ptr", "stride"):
            at = call.args[0] if call.args else None
            if name == "size" and (known := axes.shape(x)) is not None:
                return known if at is None else containers.item(known, at, ast.Constant(0))
            if name == "size" and x.axes and (one := axes.at(x.axes, integer(at) or 0)).size and at is not None:
                return Symbol("size", str(one.size), axes=Axes((one,)))
            if name == "size":
                whole = Symbol("shape", str(x.site))
                return whole if at is None else whole.child("item", str(getattr(at, "value", "")))
            return Symbol("size", f"{site}:{getattr(at, 'value', '')}")
        if name in ("max", "min", "topk", "sort") and _has_dim(call.args, call.kwargs):
            return self._with_indices(name, x, call.args, call.kwargs, site)
        if name in ("split", "chunk", "unbind", "tensor_split"):
            part = arrays.transferred("split", x, call.args, call.kwargs, site, self.grad)
            parts = call.get(0, "chunks") if name in ("chunk", "tensor_split") else None
            return Bag("tuple", [part], open=True, size=parts if isinstance(parts, Const) else None)
        if name == "bmm":
            self.note_ranks(3, (x, *call.args))
        if name in ("matmul", "mm", "bmm") and call.args:
            return self.combine("@", x, call.args[0], call.node, call.frame)
        if (name in ("add", "sub", "mul", "div", "add_", "mul_", "sub_", "div_") and call.args
                and "alpha" not in call.kwargs):
            op = {"add": "+", "sub": "-", "mul": "*", "div": "/"}[name.rstrip("_")]
            return self.combine(op, x, call.args[0], call.node, call.frame)
        return gradient_tests.kept(x, name, arrays.transferred(name, x, call.args, call.kwargs, site, self.grad))

    def _other_method(self, receiver: Value, name: str, call: Call) -> Value:
        if name == "step" and call.args and isinstance(call.args[0], Function):
            return self.call(call.args[0], [], {}, call.node, call.frame)  # LBFGS and SAM call a closure
        self._remember_callbacks(list(call.args), call.kwargs)
        if isinstance(receiver, Instance):
            return self._module_registry(receiver, name, call)
        if name in ("log_prob", "rsample", "entropy") and isinstance(receiver, (Symbol, Thing)) and len(call.args) <= 1:
            tags = frozenset({"log_prob": {"log_prob", "+chosen"}, "entropy": {"+entropy"}}.get(name, ()))
            of = [*drawn_from(receiver), *(a for a in call.args if isinstance(a, Tensor))]
            site = self.site(call.node, call.frame)
            made = merged(of, site) if self.grad and any(t.grad for t in of) else Tensor(
                grad=None if self.grad else False, site=site, models=frozenset(m for t in of for m in t.models))
            known = axis_layers.drawn(receiver, name, call.args) if isinstance(receiver, Thing) else None
            return replace(made, dtype=None, tags=tags, axes=known)
        if isinstance(receiver, Symbol) and name in SQUASHES:
            x = Tensor(grad=None if self.grad else False)
            return arrays.transferred(name, x, call.args, call.kwargs, self.site(call.node, call.frame), self.grad)
        if isinstance(receiver, Operation) and receiver.op == "compare":
            mask = Tensor(grad=False, dtype="bool", low=0.0, high=1.0, tags=mask_truth.of(receiver) | {"integer"})
            return self._tensor_method(mask, name, call)
        if isinstance(receiver, Operation) and (known := axis_calls.called(name, [receiver, *call.args], call.kwargs,
                                                                           call.site)) is not None:
            return Symbol("call", f"{name}@{call.site}{axes.text(receiver)}", axes=known)
        if isinstance(receiver, Symbol):
            at = integer(call.args[0]) if call.args else None
            if name == "size" and at is not None and (one := axes.at(axes.of(receiver), at)).size:
                return Symbol("size", str(one.size), axes=Axes((one,)))
            self.note_call(name, [receiver, *call.args], call.kwargs, call.node, call.frame)
            found = Symbol("call", f"{name}@{self.site(call.node, call.frame)}", receiver, min(receiver.depth + 1, 6))
            return axis_calls.given_to(found, axis_calls.called(name, [receiver, *call.args], call.kwargs, call.site))
        if isinstance(receiver, Parameters) or (isinstance(receiver, Bag) and name in ("index", "count")):
            return UNKNOWN
        if isinstance(receiver, Thing):
            if receiver.type == "numpy.random.default_rng" or "random" in receiver.type.lower():
                created = arrays.created(name, call.args, call.kwargs, call.site) or UNKNOWN
                return axis_calls.given_to(created, axis_calls.called(name, call.args, call.kwargs, call.site))
            self.note_call(name, [receiver, *call.args], call.kwargs, call.node, call.frame)
            drawn = axis_layers.drawn(receiver, name, call.args) if name in ("sample", "rsample", "mean") else None
            return axis_calls.given_to(Symbol("call", f"{name}@{call.site}", receiver, 1), drawn)
        if isinstance(receiver, Const):
            return Symbol("call", name)
        return UNKNOWN

    def _module_registry(self, receiver: Instance, name: str, call: Call) -> Value:
        key = call.args[0] if call.args else None
        if (name in ("register_buffer", "register_parameter", "add_module", "register_module") and len(call.args) > 1
                and (isinstance(key, Const) and isinstance(key.value, str))):
            value = call.args[1]
            receiver.attrs[key.value] = (replace(value, grad=False)
                if (name == "register_buffer" and isinstance(value, Tensor)) else value)
            return NONE
        if name in ("modules", "children", "named_modules", "named_children"):
            found = library.submodules(receiver)[1:40]
            made: list[Value] = [m for m in found if isinstance(m, (Thing, Instance))]
            if len({_kind(m) for m in made}) != 1:  # one of its parts, it is not known which
                called = Symbol("call", f"{name}@{self.site(call.node, call.frame)}", receiver, 1)
                made = [called.child("iteration", "item")]
            one = made[0]
            return Bag("generator", [Bag("tuple", [Symbol("key", "name"), one]) if name.startswith("named") else one],
                       open=True)
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


def from_model(value: Value, model: Instance | Thing) -> Value:
    if isinstance(value, Tensor):
        return replace(value, models=value.models | {id(model)})
    if isinstance(value, Bag) and value.kind in ("tuple", "list"):
        return Bag(value.kind, [from_model(v, model) for v in value.items], value.open, value.site, value.born_in)
    return value


def drawn_from(distribution: Value, left: int = 3) -> list[Tensor]:
    """The arrays that a distribution was made of, through those that wrap another one."""
    if not isinstance(distribution, Thing):
        return []
    given = [*distribution.args, *distribution.kwargs.values()]
    inner = [t for v in given if left for t in drawn_from(v, left - 1)]
    return [*(v for v in given if isinstance(v, Tensor)), *inner]
