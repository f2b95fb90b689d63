"""Names and what they are bound to: assignments, definitions, imports."""

from __future__ import annotations

import ast
from dataclasses import replace

from traindx_tools.on_code import arithmetic, containers
from traindx_tools.on_code.definitions import MOST_BASES, ClassInfo, FunctionInfo
from traindx_tools.on_code.interpreter import Frame
from traindx_tools.on_code.iteration import Iteration
from traindx_tools.on_code.library import TRANSFORMATIONS, freeze, static_parameters, submodules, thaw_some
from traindx_tools.on_code.names import canonical
from traindx_tools.on_code.operators import BINARY
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.tensors import WRITTEN
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.tree import carried_by
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Const,
    Function,
    Instance,
    Klass,
    ModuleValue,
    Parameters,
    Ref,
    Site,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    join,
    parts,
    truth,
)

_OWN_GRADIENT = frozenset({"forward", "backward", "setup_context", "jvp"})
"""Methods of a `torch.autograd.Function`, in which nothing is recorded: it says itself what its gradient is."""


class Binding(Iteration):
    """Adds assignments, definitions and imports to the interpreter."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: list[Function] = []
        self.classes: list[Klass] = []
        self._infos: dict[int, FunctionInfo] = {}

    def _body(self, statements: list[ast.stmt], frame: Frame) -> str:
        raise NotImplementedError

    def _do_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        frame.bind(node.name, self._function(node, frame, None))

    _do_AsyncFunctionDef = _do_FunctionDef

    def define(self, node: ast.Lambda, frame: Frame) -> Function:
        """A lambda as a function."""
        info = self._infos.setdefault(id(node), FunctionInfo(node, frame.file, "lambda"))
        return Function(info, frame.env if frame.function else None, frame.closures)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame,
            owner: ClassInfo | None) -> Function:
        info = self._infos.get(id(node))
        if info is None:
            info = self._infos[id(node)] = FunctionInfo(node, frame.file, node.name, owner)
            self._decorate(info, node, frame)
            if owner is not None and info.is_static and node.name in _OWN_GRADIENT and owner.derives("Function"):
                info.grad = False
        nested = frame.function is not None and owner is None
        made = Function(info, frame.env if nested else None, frame.closures if nested else (), None, info.wrappers)
        self.functions.append(made)
        return made

    def _decorate(self, info: FunctionInfo, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        for decorator in reversed(node.decorator_list):
            text = ast.unparse(decorator).split("(")[0]
            value = self.evaluate(decorator, frame)
            options: dict[str, Value] = {}
            if isinstance(value, Thing) and value.type == "functools.partial" and value.args:
                options, value = value.kwargs, value.args[0]
            name = value.type if isinstance(value, Thing) else value.name if isinstance(value, Ref) else text
            if name in _NO_GRAD:
                info.grad = False
            elif name in TRANSFORMATIONS:
                info.wrappers = (*info.wrappers, name)
                info.statics |= static_parameters(name, info, options)
            elif text in ("staticmethod", "classmethod", "property") or text.endswith((".setter", "cached_property")):
                info.is_static = info.is_static or text == "staticmethod"
                info.is_classmethod = info.is_classmethod or text == "classmethod"
                info.is_property = info.is_property or text == "property" or text.endswith("cached_property")
            else:
                info.unknown_decorator = True

    def _do_ClassDef(self, node: ast.ClassDef, frame: Frame) -> None:
        bases = tuple(self.evaluate(b, frame) for b in node.bases)
        info = ClassInfo(node, frame.file, node.name, bases)
        info.is_dataclass = any("dataclass" in ast.unparse(d) or "struct" in ast.unparse(d)
            for d in node.decorator_list)
        klass = Klass(info)
        self.classes.append(klass)
        if len(info.lineage()) == MOST_BASES:
            self.left_out(frame.file, node, f"base classes beyond {MOST_BASES}")
        frame.bind(node.name, klass)
        inner = Frame(frame.file, frame.module, frame.function, {}, (frame.env, *frame.closures))
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                info.methods[statement.name] = self._function(statement, inner, info)
                if frame.function is not None:
                    info.methods[statement.name].closure = frame.env
            else:
                self._body([statement], inner)
        info.attributes.update(inner.env)

    def _do_Import(self, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            if alias.asname:
                frame.bind(alias.asname, self._imported(alias.name, frame))
            else:
                head = alias.name.split(".")[0]
                frame.bind(head, self._imported(head, frame))

    def _do_ImportFrom(self, node: ast.ImportFrom, frame: Frame) -> None:
        source = self.find_import(node.module or "", frame.file, node.level)
        for alias in node.names:
            bound = alias.asname or alias.name
            if source is not None and alias.name != "*":
                names = self.module(source).names
                inner = self.find_import(f"{node.module or ''}.{alias.name}".lstrip("."), frame.file, node.level)
                value = names.get(alias.name) or (self.module(inner) if inner is not None else None)
                frame.bind(bound, value or Symbol("import", alias.name))
            elif source is not None:
                for name, value in list(self.module(source).names.items()):
                    if not name.startswith("_"):
                        frame.bind(name, value)
            elif node.level and (inner := self.find_import(alias.name, frame.file, node.level)) is not None:
                frame.bind(bound, self.module(inner))
            else:
                frame.bind(bound, containers.constant_of(canonical(f"{node.module or ''}.{alias.name}")))

    def _imported(self, name: str, frame: Frame) -> Value:
        file = self.find_import(name, frame.file, 0)
        return self.module(file) if file is not None else Ref(name)

    def _do_Assign(self, node: ast.Assign, frame: Frame) -> None:
        if len(node.targets) == 1 and (self_added := _adds_to_itself(node)) is not None:
            op, addend = self_added
            self._augment(node.targets[0], op, addend, node, frame)
            return
        old = self.evaluate(node.targets[0], frame) if (mixed := mixed_in(node)) else None
        value = self._noted_mode(node, self.evaluate(node.value, frame), frame)
        plain = isinstance(node.value, (ast.Name, ast.Attribute)) and isinstance(value, (Instance, Thing))
        if plain and not any(b.kind == "branch" for b in self.blocks):
            self.event("alias", "alias", node, frame, args=(value,))
        if old is not None:
            self._blended(node.targets[0], old, mixed, value, node, frame)
        carried = {n: (frame.env.get(n), frame.bound_in.get(n, ())) for n in carried_by(node) if self.loops}
        for target in node.targets:
            self.assign(target, value, frame)
        for name, (before, bound) in carried.items():
            if before is not None and (after := frame.env.get(name)) is not None:
                frame.bound_in[name] = bound
                self.event("carried", f"carried.{name}", node, frame, receiver=before, args=(before, after),
                           result=after, crossing=len(frame.loops) - len(bound))

    def _noted_mode(self, node: ast.Assign, value: Value, frame: Frame) -> Value:
        """`was = model.training`, `[m.training for m in models]`: the mode of each here, whatever is set afterwards."""
        several = isinstance(value, Bag) and bool(value.items)
        modes = value.items if isinstance(value, Bag) else [value]
        read = node.value.elt if isinstance(node.value, ast.ListComp) else node.value
        if not isinstance(read, ast.Attribute) or read.attr != "training":
            return value
        owners = [m.parent or UNKNOWN for m in modes if isinstance(m, Symbol)]
        if not owners or len(owners) < len(modes):
            return value
        self.event("read", "training", node, frame, receiver=Bag("list", owners) if several else owners[0])
        told: list[Value] = [Symbol("attribute", "training", Symbol("read", str(self.site(node, frame)), o, 1), 2)
                             for o in owners]
        return replace(value, items=told) if isinstance(value, Bag) else told[0]

    def _blended(self, target: ast.expr, old: Value, mixed: list[ast.expr], value: Value, node: ast.AST,
                 frame: Frame) -> None:
        """`x = a * x + b * y`: what is mixed in, a tensor where one of the names is one, else the mixture itself."""
        parts = [self.evaluate(m, frame) for m in mixed]
        part = next((p for p in parts if isinstance(p, Tensor)), value)
        crossing = _crossed(target, frame) if isinstance(target, ast.Name) else 0
        holder = old if isinstance(target, ast.Name) else self.evaluate(target.value, frame)  # type: ignore[attr-defined]
        chosen = isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp)  # it may be what is mixed in
        self.event("blended", "blended", node, frame, receiver=holder, args=(old, part),
                   result=UNKNOWN if chosen else value, crossing=crossing)

    def _do_AnnAssign(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            value = self.evaluate(node.value, frame)
            if (isinstance(value, Symbol) and isinstance(node.value, ast.Call)
                    and "field" in ast.unparse(node.value.func)):
                value = self._field(node.value, frame)
            self.assign(node.target, value, frame)

    def _field(self, node: ast.Call, frame: Frame) -> Value:
        for keyword in node.keywords:
            if keyword.arg == "default":
                return self.evaluate(keyword.value, frame)
            if keyword.arg == "default_factory":
                return self.call(self.evaluate(keyword.value, frame), [], {}, node, frame)
        return UNKNOWN

    def _do_AugAssign(self, node: ast.AugAssign, frame: Frame) -> None:
        self._augment(node.target, BINARY.get(type(node.op), "?"), node.value, node, frame)

    def _augment(self, target: ast.expr, op: str, addend: ast.expr, node: ast.AST, frame: Frame) -> None:
        old, value = self.evaluate(target, frame), self.evaluate(addend, frame)
        crossing, holder = 0, None
        if isinstance(target, ast.Name):
            crossing = _crossed(target, frame)
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            holder = self.evaluate(target.value, frame)
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                crossing = len(frame.loops) - len(frame.bound_in.get(target.value.id, ()))
        if isinstance(old, Bag) and op == "+":
            found = value.items if isinstance(value, Bag) else [value]
            old.items.extend(found[: max(0, 20 - len(old.items))])
            old.settle()
            old.open = old.open or not isinstance(value, Bag) or value.open or self.loops != old.born_in
            result: Value = old
        else:
            result = self.combine(op, old, value, node, frame)
        self.event("augmented", f"augmented.{op}", node, frame, receiver=holder if holder is not None else old,
            args=(old, value), result=result, crossing=crossing)
        self._rebind(target, result, frame)

    def _rebind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Assign without calling it a fresh binding."""
        if isinstance(target, ast.Name):
            before = frame.bound_in.get(target.id, ())
            frame.bind(target.id, value)
            frame.bound_in[target.id] = before
        else:
            self.assign(target, value, frame)

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Bind a target. Names that gather values are followed: where one begins anew is an event."""
        if isinstance(target, ast.Name):
            old = frame.env.get(target.id)
            if self.unread.on:
                self.unread.bind(target.id, frame, self.place(target, frame), old, value)
            if old is not None and target.id in syntax(frame.file).gathering:
                self.event("store", f"name.{target.id}", target, frame, args=(value, old))
            if isinstance(old, Const) and old.value is None:  # `if sum is None: sum = loss`: it began before
                self._rebind(target, value, frame)
            else:
                frame.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, frame)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, Bag("list", [value], open=True), frame)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.evaluate(target.value, frame), target.attr, value, target, frame)
        elif isinstance(target, ast.Subscript):
            self._set_item(target, value, frame)

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, frame: Frame) -> None:
        if isinstance(value, Bag) and not value.open and len(value.items) == len(target.elts):
            for part, item in zip(target.elts, value.items, strict=False):
                self.assign(part, item, frame)
            return
        for i, part in enumerate(target.elts):
            if isinstance(value, Symbol):
                self.assign(part, value.child("item", repr(i)), frame)
            elif isinstance(value, Bag) and value.kind == "keys" and i < len(value.items):
                self.assign(part, value.items[i], frame)
            else:
                self.assign(part, self.element(value, target, frame), frame)

    def set_attribute(self, base: Value, name: str, value: Value, node: ast.AST, frame: Frame) -> None:
        """`base.name = value`."""
        old = base.attrs.get(name) if isinstance(base, Instance) else None
        self.event("store", f"attribute.{name}", node, frame, receiver=base, args=(value, *([old] if old else [])))
        if self.unread.on:
            self.unread.bind(name, base, self.place(node, frame), old, value)
        if name == "requires_grad" and isinstance(base, Symbol) and truth(value) is not False:
            thaw_some(base, self.frozen)
        if isinstance(base, Symbol) and base.role == "call" and isinstance(node,
                ast.Attribute) and ((base, name) in self.stored or base.child("attribute", name) in parts(value)):
            if any(b.kind in ("branch", "loop") for b in self.blocks):
                self.stored.pop((base, name), None)  # what it is from here on depends on the way
            else:
                self.stored[base, name] = value
        if isinstance(base, Instance):
            if isinstance(old, Thing) and old is not value:
                self.created += 1  # a call that does this again gives something else
            base.attrs[name] = value
        elif isinstance(base, Thing):
            if name == "requires_grad" and base.state.get("of") is not None:
                self.freeze_parameters(base, truth(value), self.site(node, frame))
            base.state.setdefault("attrs", {})[name] = value
        elif isinstance(base, Table):
            base.items[name] = value
            base.settle()
        elif isinstance(base, ModuleValue):
            base.names[name] = value

    def freeze_parameters(self, parameter: Thing, wanted: bool | None, site: Site) -> None:
        """Set requires_grad of every module that a parameter of a loop stands for."""
        held: Parameters = parameter.state["of"]
        in_branch = any(b.kind == "branch" for b in self.blocks) or held.partial
        for module in held.modules:
            if in_branch:
                for part in submodules(module) or [module]:
                    if isinstance(part, (Thing, Instance)):
                        part.state["frozen"] = None
            elif wanted is not None:
                self.frozen += freeze(module, not wanted, site)
            if wanted is not False and isinstance(module, Symbol):
                thaw_some(module, self.frozen)

    def _set_item(self, target: ast.Subscript, value: Value, frame: Frame) -> None:
        base, index = self.evaluate(target.value, frame), self.evaluate(target.slice, frame)
        key = index.value if isinstance(index, Const) else "?"
        self.event("store", f"item.{key}", target, frame, receiver=base, args=(value, index))
        if isinstance(base, Table):
            containers.put(base, index, value)
            self.note_cut(base, target, frame)
        elif isinstance(base, Instance) and (method := base.klass.info.method("__setitem__")) is not None:
            self.call(self.bound(method, base), [index, value], {}, target, frame)
        elif isinstance(base, Instance) and base.klass.info.method("__missing__") is not None:
            base.state.setdefault("entry", value)
        elif isinstance(base, Bag) and base.items:
            base.items[:] = [join(i, value) for i in base.items]
        elif (isinstance(base, Tensor) and isinstance(target.value, ast.Name) and isinstance(value, Tensor)
                and value.grad):
            both = arithmetic.binary("+", base, value, self.site(target, frame), self.grad)
            frame.env[target.value.id] = replace(both, axes=base.axes) if isinstance(both, Tensor) else both
        elif isinstance(base, Tensor) and isinstance(target.value, ast.Name) and target.value.id in frame.env:
            whole = base.plain(axes=base.axes, low=base.low, high=base.high) if arithmetic.is_whole(index) else base
            frame.env[target.value.id] = arithmetic.written_into(whole, value)
        elif isinstance(base, Tensor) and isinstance(target.value, ast.Attribute):
            self._written_over(target.value, arithmetic.written_into(base, value), frame)

    def _written_over(self, target: ast.Attribute, value: Tensor, frame: Frame) -> None:
        """`self.state[0] = ...` in a method that did not make the array: who holds it sees the change."""
        holder, name = self.evaluate(target.value, frame), f"attribute.{target.attr}"
        if not isinstance(holder, Instance):
            return
        anew = any(isinstance(e, Event) and e.kind == "store" and e.name == name for e in self.blocks[-1].body)
        begins = frame.function is None or frame.function.name in ("__init__", "reset")
        site = self.site(target, frame)
        holder.attrs[target.attr] = value if anew or begins else value.tagged(f"{WRITTEN}{site.path}:{site.line}")


_NO_GRAD = ("torch.no_grad", "torch.inference_mode")


def _crossed(target: ast.Name, frame: Frame) -> int:
    """How many of the innermost loops lie between a name's binding and here; -1 for a name of an outer function."""
    if target.id in frame.globals_ or target.id in frame.outer:
        return -1
    return len(frame.loops) - len(frame.bound_in.get(target.id, ()))


def _adds_to_itself(node: ast.Assign) -> tuple[str, ast.expr] | None:
    """`x = x + y` and `x = y + x` as ("+", y); also `x = x * y`."""
    value, target = node.value, node.targets[0]
    if not isinstance(value, ast.BinOp) or not isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    text = ast.unparse(target)
    if ast.unparse(value.left) == text:
        return BINARY.get(type(value.op), "?"), value.right
    if isinstance(value.op, (ast.Add, ast.Mult)) and ast.unparse(value.right) == text:
        return BINARY[type(value.op)], value.left
    return None


def mixed_in(node: ast.Assign) -> list[ast.expr]:
    """`x = keep * x + (1 - keep) * y` (also within `y if x is None else ...`) mixes in y; [] for all else."""
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        return []
    value = node.value
    if isinstance(value, ast.IfExp):
        value = next((v for v in (value.body, value.orelse) if isinstance(v, ast.BinOp)), value)
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return []
    text = ast.unparse(target)
    for own, other in ((value.left, value.right), (value.right, value.left)):
        if text in map(ast.unparse, _factors(own)[:2]) and own is not _factors(own)[0]:
            factors = _factors(other)
            return [f for f in factors if isinstance(f, (ast.Name, ast.Attribute, ast.Subscript))] or [own]
    return []


def _factors(node: ast.expr) -> tuple[ast.expr, ...]:
    product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return (node.left, node.right) if product and isinstance(node, ast.BinOp) else (node,)
