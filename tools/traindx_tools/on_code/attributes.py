"""Attributes to abstract values."""

from __future__ import annotations

import ast

from traindx_tools.knowledge.names import THING_ATTRIBUTES
from traindx_tools.on_code import axes, axis_calls, containers
from traindx_tools.on_code.definitions import ClassInfo
from traindx_tools.on_code.evaluation import Evaluation
from traindx_tools.on_code.interpreter import Frame
from traindx_tools.on_code.names import canonical
from traindx_tools.on_code.values import (
    Const,
    Function,
    Instance,
    Klass,
    Method,
    ModuleValue,
    Operation,
    Ref,
    Symbol,
    Tensor,
    Thing,
    Value,
    unwrap,
)


class Attributes(Evaluation):
    """Adds the attributes of values."""

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        base = self.evaluate(node.value, frame)
        found = self.attribute(base, node.attr, node, frame)
        if self.unread.held:
            self.unread.read(node.attr, base, found)
        return found

    def attribute(self, base: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        """`base.name`."""
        if isinstance(base, Ref):
            return containers.constant_of(canonical(f"{base.name}.{name}"))
        if isinstance(base, Symbol):
            made = self.stored.get((base, name)) or base.child("attribute", name)
            of_model = isinstance(base.parent, Thing) and base.parent.type.startswith("transformers.")
            look = axis_calls.attribute if not of_model else lambda x, name: axis_calls.output(name, x)
            known = look(base.axes, name) if base.axes is not None else None
            return axis_calls.given_to(made, known) if known is not None else made
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
        if isinstance(base, Tensor) and base.axes is not None and name in ("shape", "T", "mT"):
            if name == "shape":
                return axes.shape(base) or Symbol("shape", str(base.site), axes=base.axes)
            return axis_calls.given_to(containers.attribute(base, name), axis_calls.attribute(base.axes, name))
        made = containers.attribute(base, name)
        known = axes.of(base) if isinstance(base, Operation) else None
        return axis_calls.given_to(made, axis_calls.attribute(known, name)) if known is not None else made

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
            stored = base.attrs[name]
            if isinstance(stored, Const) and type(stored.value) is bool and stored.fixed and name in info.flags:
                return Const(stored.value, fixed=False)
            counts = isinstance(stored, Const) and type(stored.value) is int and name in info.counters
            return Symbol("index", name) if counts else stored
        method = info.method(name)
        if method is not None:
            if method.info.is_property:
                return self.call(self.bound(method, base), [], {}, node, frame)
            return method if method.info.is_static else self.bound(method, base)
        found = info.attribute(name)
        if found is not None:
            if isinstance(found, Const) and info.is_dataclass:  # one value, however often it is read
                defaults: dict[str, Value] = base.state.setdefault("defaults", {})
                return defaults.setdefault(name, Const(found.value, fixed=False))
            return found
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
