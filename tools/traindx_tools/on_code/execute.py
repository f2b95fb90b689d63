"""Statements, modules and entry points: following a project from the top without running it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import partial

from traindx_tools.on_code import arithmetic, containers
from traindx_tools.on_code.call import LARGE
from traindx_tools.on_code.definitions import ClassInfo, FunctionInfo
from traindx_tools.on_code.evaluate import _BINARY, loop_block
from traindx_tools.on_code.frame import Frame
from traindx_tools.on_code.imports import ModuleIndex
from traindx_tools.on_code.iteration import Iteration
from traindx_tools.on_code.library import TRANSFORMATIONS, freeze, submodules
from traindx_tools.on_code.names import DEEP_LEARNING, canonical
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import (
    NONE,
    UNKNOWN,
    Bag,
    Const,
    Function,
    Instance,
    Klass,
    ModuleValue,
    Parameters,
    Ref,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    join,
    truth,
)

FUEL_PER_LINE = 40
"""Expressions that may be evaluated for each line of a file; a plain pass over code takes about 10."""
MIN_FUEL = 40_000
LIGHTNING_HOOKS = {
    "training_step": True,
    "validation_step": False,
    "test_step": False,
    "predict_step": False,
    "configure_optimizers": None,
    "on_train_epoch_end": None,
    "on_validation_epoch_end": None,
    "on_train_batch_end": None,
}
"""Hooks that Lightning calls, and whether autograd records there (it calls the validation hooks without)."""
TRAINER_HOOKS = ("compute_loss", "training_step", "prediction_step", "create_optimizer")
_NO_GRAD = ("torch.no_grad", "torch.inference_mode")
_DONE = frozenset({"return", "raise", "break", "continue"})


class Interpreter(Iteration):
    """Follows every file of a project once, from its top level and from each function that nobody calls."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        super().__init__()
        self.index = ModuleIndex(files)
        self.is_large = len(files) >= LARGE
        self.roots: list[Block] = []
        self.failures: list[tuple[SourceFile, str]] = []
        """Files in which following stopped early, and why: defects of ours, told as notes."""
        self.functions: list[Function] = []
        self.classes: list[Klass] = []
        self._infos: dict[int, FunctionInfo] = {}
        self._modules: dict[str, ModuleValue] = {}
        self._started: set[str] = set()
        self._files = {f.path: f for f in files}

    # entry points

    def run(self) -> None:
        """Follow the whole project."""
        for file in self._files.values():
            self.module(file)
        for klass in list(self.classes):
            if _worth_following(klass.info.file):
                self._hooks(klass)
        position = 0
        while position < len(self.functions):
            function = self.functions[position]
            position += 1
            if id(function.info.node) not in self.reached and _worth_following(function.info.file):
                self._guarded(function.info.file, partial(self._root, function))

    def module(self, file: SourceFile) -> ModuleValue:
        """The module of a file, its top level followed at the first request."""
        value = self._modules.setdefault(file.path, ModuleValue(file.path))
        if file.path in self._started:
            return value
        self._started.add(file.path)
        value.names["__name__"] = Const("__main__")
        root = Block("root", file.tree, file)
        frame = Frame(file, value, None, value.names)
        state = (self.blocks, self.loops, self.grad, self.autocast, self.stack, self._depth, self.fuel)
        self.blocks, self.loops, self.grad, self.autocast, self.stack, self._depth = [root], (), True, None, [], 0
        self.fuel = max(MIN_FUEL, FUEL_PER_LINE * len(file.lines))
        try:
            self._guarded(file, partial(self.run_body, file.tree.body, frame))
        finally:
            self.blocks, self.loops, self.grad, self.autocast, self.stack, self._depth, self.fuel = state
        self.roots.append(root)
        return value

    def _guarded(self, file: SourceFile, step: Callable[[], object]) -> None:
        try:
            step()
        except RecursionError:  # absurdly deep code: what was seen so far stands, the rest of this entry is skipped
            self._depth = 0
        except Exception as error:  # noqa: BLE001 - a construct that we misjudge must not lose every other file
            self._depth = 0
            self.failures.append((file, f"{type(error).__name__}: {error}"))

    def module_of(self, info: FunctionInfo | ClassInfo) -> ModuleValue:
        """The module value of the file in which something is defined."""
        return self._modules.setdefault(info.file.path, ModuleValue(info.file.path))

    def _root(self, function: Function, framework: str = "", grad: bool | None = True) -> None:
        info = function.info
        if isinstance(info.node, ast.Lambda):
            return
        root = Block("root", info.node, info.file, info, framework=framework)
        body = root
        if framework in ("training_step", "compute_loss"):
            body = Block("loop", info.node, info.file, info, framework=framework)
            root.body.append(body)
        self.blocks, self.loops, self.grad, self.autocast, self.stack, self._depth = [body], (), grad, None, [], 0
        self.loops = (body,) if body is not root else ()
        self.fuel = max(MIN_FUEL, FUEL_PER_LINE * len(info.statements) * 10)
        owner = self._owner(function)
        bound = Function(info, function.closure, function.closures, owner, ())
        spec = info.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)][1 if owner is not None and not info.is_static else 0 :]
        frame = Frame(info.file, self.module_of(info))
        kwargs: dict[str, Value] = {a.arg: self._annotated(a, frame) for a in spec.kwonlyargs}
        args = [self._annotated(a, frame) for a in (*spec.posonlyargs, *spec.args) if a.arg in names]
        self.invoke(bound, args, kwargs, info.node, frame)
        self.roots.append(root)

    def _annotated(self, arg: ast.arg, frame: Frame) -> Value:
        """An argument of which only the annotation is known."""
        symbol = Symbol("parameter", arg.arg)
        if arg.annotation is None:
            return symbol
        kind = self.evaluate(arg.annotation, frame)
        if isinstance(kind, Klass):
            return next(iter(self.instances.get(id(kind.info), [])), symbol)
        if (
            isinstance(kind, Ref)
            and kind.name.rpartition(".")[2] in _ANNOTATED
            and kind.name.startswith(_ANNOTATED_HOMES)
        ):
            return Thing(kind.name, (), {}, self.site(arg, frame), arg, {"annotation": True})
        return symbol

    def _owner(self, function: Function) -> Value | None:
        info = function.info
        if function.owner is not None or info.owner is None or info.is_static:
            return function.owner
        klass = next((k for k in self.classes if k.info is info.owner), None)
        if klass is None:
            return None
        if info.is_classmethod:
            return klass
        return self._some_instance(klass)

    def _some_instance(self, klass: Klass) -> Instance:
        """An object of the class: one that the project makes, else one with unknown arguments."""
        for other in self.classes:
            if any(i is klass.info for i in other.info.lineage()) and self.instances.get(id(other.info)):
                return self.instances[id(other.info)][0]
        init = klass.info.method("__init__")
        frame = Frame(klass.info.file, self.module_of(klass.info))
        args: list[Value] = []
        if init is not None:
            spec = init.info.node.args
            args = [self._annotated(a, frame) for a in (*spec.posonlyargs, *spec.args)[1:]]
        made = self.instantiate(klass, args, {}, klass.info.node, frame)
        return (
            made if isinstance(made, Instance) else Instance(klass, self.site(klass.info.node, frame), klass.info.node)
        )

    def _hooks(self, klass: Klass) -> None:
        info = klass.info
        if info.derives("LightningModule", "LightningDataModule"):
            for name, grad in LIGHTNING_HOOKS.items():
                if name in info.methods:
                    self._guarded(info.file, partial(self._root, info.methods[name], name, grad is not False))
        elif info.derives("Trainer", "Seq2SeqTrainer", "SFTTrainer", "DPOTrainer", "GRPOTrainer"):
            for name in TRAINER_HOOKS:
                if name in info.methods:
                    self._guarded(info.file, partial(self._root, info.methods[name], name))

    # statements

    def run_body(self, statements: list[ast.stmt], frame: Frame) -> None:
        """Execute statements in a frame."""
        self._body(statements, frame)

    def _body(self, statements: list[ast.stmt], frame: Frame) -> str:
        """Execute statements; how control leaves them: "" at the end, else "return", "raise", "break", "continue"."""
        for statement in statements:
            self.fuel -= 1
            handler = getattr(self, f"_do_{type(statement).__name__}", None)
            left = handler(statement, frame) if handler is not None else ""
            if left:
                return str(left)
        return ""

    def _do_Expr(self, node: ast.Expr, frame: Frame) -> None:
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value, frame)

    def _do_Return(self, node: ast.Return, frame: Frame) -> str:
        frame.returns.append(self.evaluate(node.value, frame) if node.value else NONE)
        return "return"

    def _do_Raise(self, node: ast.Raise, frame: Frame) -> str:
        if node.exc is not None:
            self.evaluate(node.exc, frame)
        return "raise"

    def _do_Break(self, node: ast.Break, frame: Frame) -> str:
        return "break"

    def _do_Continue(self, node: ast.Continue, frame: Frame) -> str:
        return "continue"

    def _do_Global(self, node: ast.Global, frame: Frame) -> None:
        frame.globals_.update(node.names)

    def _do_Nonlocal(self, node: ast.Nonlocal, frame: Frame) -> None:
        frame.outer.update(node.names)

    def _do_Assert(self, node: ast.Assert, frame: Frame) -> None:
        self.evaluate(node.test, frame)

    def _do_Delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            inner = target.value if isinstance(target, (ast.Subscript, ast.Attribute)) else target
            value = self.evaluate(inner, frame)
            name = f"delete.{target.attr}" if isinstance(target, ast.Attribute) else "delete.item"
            self.event("delete", name, node, frame, receiver=value)

    def _do_If(self, node: ast.If, frame: Frame) -> str:
        test = self.evaluate(node.test, frame)
        known = truth(test)
        if known is not None:
            return self._body(node.body if known else node.orelse, frame)
        before = dict(frame.env)
        left = self._branch(node.body, test, node, frame)
        taken, frame.env = frame.env, _restored(frame, before)
        other = self._branch(node.orelse, test, node, frame)
        if left and other:
            return left if left == other else "return" if {left, other} <= {"return", "raise"} else left
        if left:
            return ""
        if not other:
            _merge(taken, frame.env)
        else:
            frame.env.clear()
            frame.env.update(taken)
        return ""

    def _branch(self, statements: list[ast.stmt], test: Value, node: ast.AST, frame: Frame) -> str:
        if not statements:
            return ""
        block = Block("branch", node, frame.file, frame.function, subject=test)
        self.blocks[-1].body.append(block)
        self.blocks.append(block)
        left = self._body(statements, frame)
        self.blocks.pop()
        return left

    def _do_For(self, node: ast.For | ast.AsyncFor, frame: Frame) -> str:
        iterable = self.evaluate(node.iter, frame)
        block = self.iterate(node.target, iterable, node, frame)
        return self._loop(block, node.body, node.orelse, frame)

    _do_AsyncFor = _do_For

    def _do_While(self, node: ast.While, frame: Frame) -> str:
        block = loop_block(node, frame.file, frame.function, None, None)
        self.blocks[-1].body.append(block)
        block.subject = self.evaluate(node.test, frame)
        return self._loop(block, node.body, node.orelse, frame)

    def _loop(self, block: Block, body: list[ast.stmt], orelse: list[ast.stmt], frame: Frame) -> str:
        outer, inner = self.loops, frame.loops
        self.blocks.append(block)
        self.loops, frame.loops = (*outer, block), (*inner, block)
        left = self._body(body, frame)
        self.blocks.pop()
        self.loops, frame.loops = outer, inner
        self._body(orelse, frame)
        return left if left == "return" and isinstance(block.node, ast.While) else ""

    def iterate(self, target: ast.expr, iterable: Value, node: ast.AST, frame: Frame) -> Block:
        """Open a loop block and bind its target."""
        count = iterable.state.get("count") if isinstance(iterable, Thing) and iterable.type == "range" else None
        subject = (
            iterable.args[0]
            if isinstance(iterable, Thing) and iterable.type == "enumerate" and iterable.args
            else iterable
        )
        if count is None and isinstance(subject, Thing) and subject.type == "range":
            count = subject.state.get("count")
        block = loop_block(node, frame.file, frame.function, subject, count)
        self.blocks[-1].body.append(block)
        outer, inner = self.loops, frame.loops
        self.blocks.append(block)
        self.loops, frame.loops = (*outer, block), (*inner, block)
        self.assign(target, self.element(iterable, node, frame), frame)
        self.blocks.pop()
        self.loops, frame.loops = outer, inner
        return block

    def _do_Try(self, node: ast.Try, frame: Frame) -> str:
        left = self._body(node.body, frame)
        after = frame.env
        for handler in node.handlers:
            frame.env = _restored(frame, dict(after))
            if handler.name:
                frame.env[handler.name] = UNKNOWN
            self._branch(handler.body, UNKNOWN, handler, frame)
        frame.env = _restored(frame, after)
        if not left:
            left = self._body(node.orelse, frame)
        return self._body(node.finalbody, frame) or left

    _do_TryStar = _do_Try

    def _do_With(self, node: ast.With | ast.AsyncWith, frame: Frame) -> str:
        saved = (self.grad, self.autocast)
        depth = len(self.blocks)
        for item in node.items:
            value = self.evaluate(item.context_expr, frame)
            block = Block("with", node, frame.file, frame.function, subject=value)
            self.blocks[-1].body.append(block)
            self.blocks.append(block)
            self._enter(value)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, self._entered(value), frame)
        left = self._body(node.body, frame)
        del self.blocks[depth:]
        self.grad, self.autocast = saved
        return left

    _do_AsyncWith = _do_With

    def _enter(self, value: Value) -> None:
        from traindx_tools.on_code.arrays import dtype_of

        if isinstance(value, Bag) and value.kind == "generator":
            self.grad = False if value.suspends_grad else self.grad
            return
        if isinstance(value, (Symbol, Const)) or not isinstance(value, Thing):
            return
        if value.type in _NO_GRAD:
            self.grad = False
        elif value.type == "torch.enable_grad":
            self.grad = True
        elif value.type == "torch.set_grad_enabled":
            self.grad = truth(value.argument(0, "mode"))
        elif value.type == "torch.amp.autocast":
            if truth(value.kwargs.get("enabled")) is False:
                self.autocast = None
                return
            named = [dtype_of(a) for a in (*value.args, *value.kwargs.values())]
            self.autocast = next((d for d in named if d), "float16")

    def _entered(self, value: Value) -> Value:
        if isinstance(value, Bag) and value.kind == "generator":
            return containers.joined(value.items)
        return value if isinstance(value, (Thing, Instance)) else UNKNOWN

    def _do_Match(self, node: ast.Match, frame: Frame) -> None:
        subject = self.evaluate(node.subject, frame)
        for case in node.cases:
            before = dict(frame.env)
            self._branch(case.body, subject, case.pattern, frame)
            taken, frame.env = frame.env, _restored(frame, before)
            _merge(taken, frame.env)

    # definitions and imports

    def _do_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        frame.bind(node.name, self._function(node, frame, None))

    _do_AsyncFunctionDef = _do_FunctionDef

    def define(self, node: ast.Lambda, frame: Frame) -> Function:
        """A lambda as a function."""
        info = self._infos.setdefault(id(node), FunctionInfo(node, frame.file, "lambda"))
        return Function(info, frame.env if frame.function else None, frame.closures)

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame, owner: ClassInfo | None
    ) -> Function:
        info = self._infos.get(id(node))
        if info is None:
            info = self._infos[id(node)] = FunctionInfo(node, frame.file, node.name, owner)
            self._decorate(info, node, frame)
        nested = frame.function is not None and owner is None
        made = Function(info, frame.env if nested else None, frame.closures if nested else (), None, info.wrappers)
        self.functions.append(made)
        return made

    def _decorate(self, info: FunctionInfo, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        for decorator in reversed(node.decorator_list):
            text = ast.unparse(decorator).split("(")[0]
            value = self.evaluate(decorator, frame)
            if isinstance(value, Thing) and value.type == "functools.partial" and value.args:
                value = value.args[0]
            name = value.type if isinstance(value, Thing) else value.name if isinstance(value, Ref) else text
            if name in _NO_GRAD:
                info.grad = False
            elif name in TRANSFORMATIONS:
                info.wrappers = (*info.wrappers, name)
            elif text in ("staticmethod", "classmethod", "property") or text.endswith((".setter", "cached_property")):
                info.is_static = info.is_static or text == "staticmethod"
                info.is_classmethod = info.is_classmethod or text == "classmethod"
                info.is_property = info.is_property or text == "property" or text.endswith("cached_property")
            else:
                info.unknown_decorator = True

    def _do_ClassDef(self, node: ast.ClassDef, frame: Frame) -> None:
        bases = tuple(self.evaluate(b, frame) for b in node.bases)
        info = ClassInfo(node, frame.file, node.name, bases)
        info.is_dataclass = any(
            "dataclass" in ast.unparse(d) or "struct" in ast.unparse(d) for d in node.decorator_list
        )
        klass = Klass(info)
        self.classes.append(klass)
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
        source = self.index.find(node.module or "", frame.file, node.level)
        for alias in node.names:
            bound = alias.asname or alias.name
            if source is not None and alias.name != "*":
                names = self.module(source).names
                inner = self.index.find(f"{node.module or ''}.{alias.name}".lstrip("."), frame.file, node.level)
                value = names.get(alias.name) or (self.module(inner) if inner is not None else None)
                frame.bind(bound, value or Symbol("import", alias.name))
            elif source is not None:
                for name, value in list(self.module(source).names.items()):
                    if not name.startswith("_"):
                        frame.bind(name, value)
            elif node.level and (inner := self.index.find(alias.name, frame.file, node.level)) is not None:
                frame.bind(bound, self.module(inner))
            else:
                frame.bind(bound, containers.constant_of(canonical(f"{node.module or ''}.{alias.name}")))

    def _imported(self, name: str, frame: Frame) -> Value:
        file = self.index.find(name, frame.file, 0)
        return self.module(file) if file is not None else Ref(name)

    # assignments

    def _do_Assign(self, node: ast.Assign, frame: Frame) -> None:
        if len(node.targets) == 1 and (self_added := _adds_to_itself(node)) is not None:
            op, addend = self_added
            self._augment(node.targets[0], op, addend, node, frame)
            return
        value = self.evaluate(node.value, frame)
        for target in node.targets:
            self.assign(target, value, frame)

    def _do_AnnAssign(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            value = self.evaluate(node.value, frame)
            if (
                isinstance(value, Symbol)
                and isinstance(node.value, ast.Call)
                and "field" in ast.unparse(node.value.func)
            ):
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
        self._augment(node.target, _BINARY.get(type(node.op), "?"), node.value, node, frame)

    def _augment(self, target: ast.expr, op: str, addend: ast.expr, node: ast.AST, frame: Frame) -> None:
        old, value = self.evaluate(target, frame), self.evaluate(addend, frame)
        crossing, holder = 0, None
        if isinstance(target, ast.Name):
            crossing = len(frame.loops) - len(frame.bound_in.get(target.id, ()))
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            holder = self.evaluate(target.value, frame)
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                crossing = len(frame.loops) - len(frame.bound_in.get(target.value.id, ()))
        if isinstance(old, Bag) and op == "+":
            found = value.items if isinstance(value, Bag) else [value]
            old.items.extend(found[: max(0, 20 - len(old.items))])
            old.open = old.open or not isinstance(value, Bag) or value.open or self.loops != old.born_in
            result: Value = old
        else:
            result = self.combine(op, old, value, node, frame)
        self.event(
            "augmented",
            f"augmented.{op}",
            node,
            frame,
            receiver=holder if holder is not None else old,
            args=(old, value),
            result=result,
            crossing=crossing,
        )
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
        """Bind a target."""
        if isinstance(target, ast.Name):
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
        if isinstance(base, Instance):
            base.attrs[name] = value
        elif isinstance(base, Thing):
            if name == "requires_grad" and base.state.get("of") is not None:
                self._freeze_parameters(base, truth(value))
            base.state.setdefault("attrs", {})[name] = value
        elif isinstance(base, Table):
            base.items[name] = value
        elif isinstance(base, ModuleValue):
            base.names[name] = value

    def _freeze_parameters(self, parameter: Thing, wanted: bool | None) -> None:
        held: Parameters = parameter.state["of"]
        in_branch = any(b.kind == "branch" for b in self.blocks) or held.partial
        for module in held.modules:
            if in_branch:
                for part in submodules(module):
                    if isinstance(part, (Thing, Instance)):
                        part.state["frozen"] = None
            elif wanted is not None:
                freeze(module, not wanted)

    def _set_item(self, target: ast.Subscript, value: Value, frame: Frame) -> None:
        base, index = self.evaluate(target.value, frame), self.evaluate(target.slice, frame)
        key = index.value if isinstance(index, Const) else "?"
        self.event("store", f"item.{key}", target, frame, receiver=base, args=(value, index))
        if isinstance(base, Table):
            containers.put(base, index, value)
        elif isinstance(base, Instance) and (method := base.klass.info.method("__setitem__")) is not None:
            self.call(self.bound(method, base), [index, value], {}, target, frame)
        elif isinstance(base, Bag) and base.items:
            base.items[:] = [join(i, value) for i in base.items]
        elif (
            isinstance(base, Tensor) and isinstance(target.value, ast.Name) and isinstance(value, Tensor) and value.grad
        ):
            frame.env[target.value.id] = arithmetic.binary("+", base, value, self.site(target, frame), self.grad)


_ANNOTATED = frozenset(
    {"Optimizer", "GradScaler", "Accelerator", "DataLoader", "Module", "Adam", "AdamW", "SGD", "Fabric"}
)
_ANNOTATED_HOMES = ("torch.", "accelerate.", "lightning.")
_IMPORTS = re.compile(r"^\s*(?:import|from)\s+(" + "|".join(sorted(DEEP_LEARNING - {"numpy"})) + r")\b", re.M)


def _worth_following(file: SourceFile) -> bool:
    return _IMPORTS.search(file.text) is not None


def _restored(frame: Frame, env: dict[str, Value]) -> dict[str, Value]:
    """Put these names back; a module's body keeps its own dict, which others hold."""
    if frame.function is None:
        frame.env.clear()
        frame.env.update(env)
        return frame.env
    return env


def _merge(taken: dict[str, Value], env: dict[str, Value]) -> None:
    """Names after an `if`: joined where both branches bind them."""
    for name, value in taken.items():
        other = env.get(name)
        env[name] = value if other is None or other is value else join(value, other)


def _adds_to_itself(node: ast.Assign) -> tuple[str, ast.expr] | None:
    """`x = x + y` and `x = y + x` as ("+", y); also `x = x * y`."""
    value, target = node.value, node.targets[0]
    if not isinstance(value, ast.BinOp) or not isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    text = ast.unparse(target)
    if ast.unparse(value.left) == text:
        return _BINARY.get(type(value.op), "?"), value.right
    if isinstance(value.op, (ast.Add, ast.Mult)) and ast.unparse(value.right) == text:
        return _BINARY[type(value.op)], value.left
    return None
