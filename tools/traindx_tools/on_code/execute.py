"""Entry points: following a project from the top without running it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import partial

from traindx_tools.on_code.call import LARGE
from traindx_tools.on_code.definitions import ClassInfo, FunctionInfo
from traindx_tools.on_code.interpreter import Frame
from traindx_tools.on_code.lengths import whole_data
from traindx_tools.on_code.names import DEEP_LEARNING
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.statements import Statements
from traindx_tools.on_code.trace import Block, unique_events
from traindx_tools.on_code.values import (
    Const,
    Function,
    Instance,
    Klass,
    ModuleValue,
    Ref,
    Symbol,
    Table,
    Thing,
    Value,
)
from traindx_tools.source_files.imports import ModuleIndex

FUEL_PER_LINE = 40
"""Expressions that may be evaluated for each line of a file; a plain pass over code takes about 10."""
MIN_FUEL = 40_000
MOST_FETCHED = 40
"""Data sets of which one sample is fetched."""
LIGHTNING_HOOKS = {"training_step": True, "validation_step": False, "test_step": False, "predict_step": False,
    "configure_optimizers": None, "on_train_epoch_end": None, "on_validation_epoch_end": None,
    "on_train_batch_end": None}
"""Hooks that Lightning calls, and whether autograd records there (it calls the validation hooks without)."""
TRAINER_HOOKS = ("compute_loss", "training_step", "prediction_step", "create_optimizer")


class Interpreter(Statements):
    """Follows every file of a project once, from its top level and from each function that nobody calls."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        super().__init__()
        self.index: ModuleIndex[SourceFile] = ModuleIndex(files)
        self.is_large = len(files) >= LARGE
        self.roots: list[Block] = []
        self.failures: list[tuple[SourceFile, str]] = []
        """Files in which following stopped early, and why: defects of ours, told as notes."""
        self._modules: dict[str, ModuleValue] = {}
        self._started: set[str] = set()
        self._derived: dict[int, list[ClassInfo]] = {}
        self._indexed = 0
        self._klasses: dict[int, Klass] = {}
        self._named = 0
        self._left: dict[str, int] = {}
        """For each file what is left of the budget that its entries share; calls between them multiply."""
        self._files = {f.path: f for f in files}
        self.fetched: dict[int, Block] = {}
        """What happens when one sample is fetched, by the identity of the data set."""

    def run(self) -> None:
        """Follow the whole project."""
        for file in self._files.values():
            self.module(file)
        self._follow_rest(_hands_over)
        for klass in list(self.classes):
            if _worth_following(klass.info.file):
                self._hooks(klass)
        self._follow_rest()
        self._fetch_samples()
        self.failures += self.omitted.values()

    def _fetch_samples(self) -> None:
        """Follow how one sample is fetched, for each data set of the project that a loader is given."""
        roots = [r for r in self.roots if "DataLoader" in r.methods]
        made = [e.result for e in unique_events(roots) if e.method == "DataLoader"] if roots else []
        for loader in made:
            data = whole_data(loader.argument(0, "dataset")) if isinstance(loader, Thing) else None
            if isinstance(data, Instance) and id(data) not in self.fetched and len(self.fetched) < MOST_FETCHED:
                root = self.fetched[id(data)] = Block("root", data.node, data.klass.info.file)
                self.blocks, self.loops, self.grad, self.autocast, self.stack = [root], (), True, None, []
                self._depth, self.fuel = 0, MIN_FUEL
                frame = Frame(data.klass.info.file, self.module_of(data.klass.info))
                self._guarded(data.klass.info.file, partial(self.sample, data, data.node, frame))

    def _follow_rest(self, chosen: Callable[[FunctionInfo], bool] = lambda info: True) -> None:
        """Follow each function that nothing has called yet."""
        position = 0
        while position < len(self.functions):
            function = self.functions[position]
            position += 1
            info = function.info
            if id(info.node) not in self.reached and _worth_following(info.file) and chosen(info):
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
        self.blocks, self.loops, self.grad, self.autocast, self.stack, self._depth = [root], (), grad, None, [], 0
        given = max(MIN_FUEL, FUEL_PER_LINE * len(info.statements) * 10)
        left = self._left.setdefault(info.file.path, max(10 * MIN_FUEL, 5 * FUEL_PER_LINE * len(info.file.lines)))
        self.fuel = given = min(given, left)
        owner = self._owner(function)
        if body is not root:
            root.body.append(body)
            self.blocks, self.loops = [body], (body,)
        bound = Function(info, function.closure, function.closures, owner, ())
        spec = info.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)][1 if owner is not None and not info.is_static else 0 :]
        frame = Frame(info.file, self.module_of(info))
        kwargs: dict[str, Value] = {a.arg: self._argument(a, d, frame) for a,
            d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)}
        known = self._fed(owner, framework or info.name, names) if isinstance(owner, Instance) else {}
        args = [known.get(a.arg) or self._argument(a, d, frame) for a, d in _with_defaults(spec) if a.arg in names]
        self.unread.held.clear()
        root.result = self.invoke(bound, args, kwargs, info.node, frame)
        self._left[info.file.path] -= given - max(self.fuel, 0)
        self.roots.append(root)

    def _fed(self, owner: Instance, hook: str, names: list[str]) -> dict[str, Value]:
        """What a trainer of a library gives to a hook: the batch of the loader that it was handed."""
        wanted = "train" if hook == "training_step" else "val" if hook in ("validation_step", "forward") else ""
        for event in self.handed if wanted and names else ():
            model, given = event.argument(0, "model"), event.kwargs
            if event.method == "fit" and model is owner and hook != "forward":
                loader = given.get(f"{wanted}_dataloaders") or given.get(f"{wanted}_dataloader") or (
                    event.args[1:][wanted == "val"] if len(event.args) > 1 + (wanted == "val") else None)
                if isinstance(loader, Thing):
                    return {names[0]: self.element(loader, event.node, Frame(event.file, ModuleValue("")))}
            elif event.method == "Trainer" and model is owner and hook == "forward" and "data_collator" not in given:
                data = given.get("train_dataset")
                fed = (data,) if data is not None else ()
                loader = Thing("torch.utils.data.DataLoader", fed, {}, event.site, event.node)
                batch = self.element(loader, event.node, Frame(event.file, ModuleValue("")))
                rest = dict.fromkeys(names, batch.rest) if isinstance(batch, Table) and batch.rest is not None else {}
                return {**rest, **batch.items} if isinstance(batch, Table) else {}
        return {}

    def _argument(self, arg: ast.arg, default: ast.expr | None, frame: Frame) -> Value:
        """An argument of a function that nobody calls: its default, which a caller may override."""
        if isinstance(default, ast.Constant) and isinstance(default.value, (int, float, str)):
            return Const(default.value, fixed=False)
        if isinstance(default, (ast.Call, ast.Name, ast.UnaryOp, ast.BinOp)):
            value = self.evaluate(default, frame)
            if isinstance(value, Const) and isinstance(value.value, (int, float, str)):
                return Const(value.value, fixed=False)
            if isinstance(value, Instance) and value.klass.info.is_dataclass:
                return value
        return self._annotated(arg, frame)

    def _annotated(self, arg: ast.arg, frame: Frame) -> Value:
        """An argument of which only the annotation is known."""
        symbol = Symbol("parameter", arg.arg)
        if arg.annotation is None:
            return symbol
        kind = self.evaluate(arg.annotation, frame)
        if isinstance(kind, Klass):
            return next(iter(self.instances.get(id(kind.info), [])), symbol)
        if (isinstance(kind, Ref) and kind.name.rpartition(".")[2] in _ANNOTATED
                and kind.name.startswith(_ANNOTATED_HOMES)):
            return Thing(kind.name, (), {}, self.site(arg, frame), arg, {"annotation": True})
        return symbol

    def _owner(self, function: Function) -> Value | None:
        info = function.info
        if function.owner is not None or info.owner is None or info.is_static:
            return function.owner
        klass = self.klass_of(info.owner)
        if klass is None:
            return None
        if info.is_classmethod:
            return klass
        return self._some_instance(klass)

    def _some_instance(self, klass: Klass) -> Instance:
        """An object of the class: one that the project makes, else one with unknown arguments."""
        for heir in self._heirs(klass.info):
            if known := self.instances.get(id(heir)):
                return known[0]
        init = klass.info.method("__init__")
        frame = Frame(klass.info.file, self.module_of(klass.info))
        args: list[Value] = []
        if init is not None:
            args = [self._argument(a, d, frame) for a, d in _with_defaults(init.info.node.args)[1:]]
        made = self.instantiate(klass, args, {}, klass.info.node, frame)
        return (made if isinstance(made, Instance)
            else Instance(klass, self.site(klass.info.node, frame), klass.info.node))

    def klass_of(self, info: ClassInfo) -> Klass | None:
        """The value of a class."""
        for klass in self.classes[self._named :]:
            self._klasses.setdefault(id(klass.info), klass)
        self._named = len(self.classes)
        return self._klasses.get(id(info))

    def _heirs(self, info: ClassInfo) -> list[ClassInfo]:
        """The class itself and those that derive from it, in the order of their definition."""
        for klass in self.classes[self._indexed :]:
            for base in klass.info.lineage():
                self._derived.setdefault(id(base), []).append(klass.info)
        self._indexed = len(self.classes)
        return self._derived.get(id(info), [])

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

    def find_import(self, dotted: str, importer: SourceFile, level: int) -> SourceFile | None:
        """The project's file that an import means."""
        return self.index.find(dotted, importer, level)


_ANNOTATED = frozenset({"Optimizer", "GradScaler", "Accelerator", "DataLoader", "Module", "Adam", "AdamW", "SGD",
    "Fabric"})
_ANNOTATED_HOMES = ("torch.", "accelerate.", "lightning.")
_IMPORTS = re.compile(r"^[ \t]*(?:import|from)\s+(" + "|".join(sorted(DEEP_LEARNING - {"numpy"})) + r")\b", re.M)


def _hands_over(info: FunctionInfo) -> bool:
    """Whether a function hands a model to a trainer of a library: what its hooks get is known from there."""
    if info.owner is not None or ".fit(" not in info.file.text or "ightning" not in info.file.text:
        return False
    return any(".fit(" in line for line in info.file.lines[info.node.lineno - 1:info.node.end_lineno])


def _with_defaults(spec: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    """Positional arguments with their defaults."""
    args = [*spec.posonlyargs, *spec.args]
    none: list[ast.expr | None] = [None] * (len(args) - len(spec.defaults))
    return list(zip(args, [*none, *spec.defaults], strict=True))


def _worth_following(file: SourceFile) -> bool:
    return file.mentions(_IMPORTS)
