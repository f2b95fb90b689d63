"""What the calls of installed packages mean: torch, its data loading, accelerate, jax, argparse.

Each entry takes the interpreter and a `Call` and returns the call's value, or None to leave it to the general rules.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from traindx_tools.on_code import arithmetic, configuration, containers
from traindx_tools.on_code.arrays import dtype_of
from traindx_tools.on_code.frame import Frame
from traindx_tools.on_code.values import (
    NONE,
    UNKNOWN,
    Bag,
    Const,
    Function,
    Instance,
    Klass,
    Method,
    Operation,
    Parameters,
    Ref,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    truth,
)

if TYPE_CHECKING:
    from traindx_tools.on_code.call import Caller


@dataclass(frozen=True, eq=False)
class Call:
    """A call to something that is not of the project."""

    name: str
    receiver: Value | None
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    node: ast.AST
    frame: Frame

    def get(self, position: int, name: str) -> Value | None:
        """An argument by position or name."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[position] if 0 <= position < len(self.args) else None

    @property
    def first(self) -> Value:
        """The first argument, unknown if there is none."""
        return self.args[0] if self.args else next(iter(self.kwargs.values()), UNKNOWN)


Handler = Callable[["Caller", Call], "Value | None"]
FUNCTIONS: dict[str, Handler] = {}
"""By qualified name."""
METHODS: dict[str, Handler] = {}
"""By method name, for receivers that are no tensors."""


def function(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler under qualified names."""

    def register(handler: Handler) -> Handler:
        FUNCTIONS.update(dict.fromkeys(names, handler))
        return handler

    return register


def method(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler under method names."""

    def register(handler: Handler) -> Handler:
        METHODS.update(dict.fromkeys(names, handler))
        return handler

    return register


# Python itself


@function("builtins.len")
def _len(caller: Caller, call: Call) -> Value:
    value = call.first
    if isinstance(value, Bag) and not value.open:
        return Const(len(value.items))
    if isinstance(value, Const) and isinstance(value.value, str):
        return Const(len(value.value))
    prepared = isinstance(value, Thing) and bool(value.state.get("prepared"))
    return Operation("len prepared" if prepared else "len", (value,))


@function("builtins.int", "builtins.round", "builtins.float", "math.ceil", "math.floor", "builtins.abs", "numpy.ceil")
def _number(caller: Caller, call: Call) -> Value:
    value = call.first
    if isinstance(value, Const) and isinstance(value.value, (int, float, str)) and not call.name.endswith("abs"):
        try:
            convert: Any = float if call.name == "builtins.float" else int if call.name == "builtins.int" else None
            if convert is not None:
                return Const(convert(value.value), value.fixed)
        except (ValueError, OverflowError):
            return UNKNOWN
        return arithmetic.operation("round", (value,)) if isinstance(value.value, float) else value
    if isinstance(value, Tensor):
        return Operation("item", (Symbol("number", str(value.site)),))
    return arithmetic.operation("round", (value,))


@function("builtins.max", "builtins.min")
def _extreme(caller: Caller, call: Call) -> Value | None:
    if any(isinstance(a, Tensor) for a in call.args):
        return None
    numbers = [a for a in call.args if isinstance(a, Const) and isinstance(a.value, (int, float))]
    if len(numbers) == len(call.args) > 1:
        pick = max if call.name.endswith("max") else min
        return Const(pick(n.value for n in numbers), all(n.fixed for n in numbers))
    return arithmetic.operation("extreme", call.args) if len(call.args) > 1 else UNKNOWN


@function("builtins.sum")
def _sum(caller: Caller, call: Call) -> Value:
    return caller.element(call.first, call.node, call.frame)


@function("builtins.range")
def _range(caller: Caller, call: Call) -> Value:
    count: Value = call.args[0] if call.args else UNKNOWN
    if len(call.args) >= 2:
        start, stop = call.args[0], call.args[1]
        one_based = (
            start == Const(1) and isinstance(stop, Operation) and stop.op == "+" and stop.operands[1] == Const(1)
        )
        if one_based and isinstance(stop, Operation):
            count = stop.operands[0]
        elif start == Const(0) or not isinstance(start, Const):
            count = stop
        else:
            count = arithmetic.binary("-", stop, start, caller.site(call.node, call.frame), None)
    return Thing("range", call.args, {}, caller.site(call.node, call.frame), call.node, {"count": count})


@function("builtins.enumerate")
def _enumerate(caller: Caller, call: Call) -> Value:
    pair = Bag("tuple", [Symbol("index", "index"), caller.element(call.first, call.node, call.frame)])
    return Thing("enumerate", (call.first,), {}, caller.site(call.node, call.frame), call.node, {"element": pair})


@function("builtins.zip", "itertools.product")
def _zip(caller: Caller, call: Call) -> Value:
    pair = Bag("tuple", [caller.element(a, call.node, call.frame) for a in call.args])
    return Thing("enumerate", call.args[:1], {}, caller.site(call.node, call.frame), call.node, {"element": pair})


@function(
    "tqdm.tqdm",
    "tqdm.auto.tqdm",
    "tqdm.notebook.tqdm",
    "tqdm.trange",
    "tqdm.auto.trange",
    "tqdm.std.tqdm",
    "builtins.iter",
    "builtins.list",
    "builtins.tuple",
    "builtins.reversed",
    "builtins.sorted",
    "builtins.set",
    "itertools.cycle",
    "itertools.islice",
    "rich.progress.track",
    "alive_progress.alive_it",
    "copy.copy",
)
def _through(caller: Caller, call: Call) -> Value:
    value: Value = call.first
    if call.name.endswith("trange"):
        value = _range(caller, call) or UNKNOWN
    if isinstance(value, Bag) and call.name in ("builtins.list", "builtins.tuple", "builtins.set", "builtins.sorted"):
        return Bag(call.name.rpartition(".")[2], list(value.items), value.open, value.site, caller.loops)
    if not call.args and call.name in ("builtins.list", "builtins.tuple", "builtins.set"):
        return Bag("list", [], site=caller.site(call.node, call.frame), born_in=caller.loops)
    return value


@function("builtins.next")
def _next(caller: Caller, call: Call) -> Value:
    value = call.first
    if isinstance(value, Symbol) and value.role == "parameters":
        return value
    return caller.element(value, call.node, call.frame)


@function(
    "builtins.dict",
    "collections.OrderedDict",
    "types.SimpleNamespace",
    "argparse.Namespace",
    "easydict.EasyDict",
    "ml_collections.ConfigDict",
)
def _dict(caller: Caller, call: Call) -> Value:
    table = Table({}, site=caller.site(call.node, call.frame), born_in=caller.loops)
    for arg in call.args:
        containers.merge_tables(table, arg)
    table.items.update(call.kwargs)
    return table


@function("collections.defaultdict")
def _defaultdict(caller: Caller, call: Call) -> Value:
    site = caller.site(call.node, call.frame)
    made: Value = Const(0)
    if isinstance(call.first, Ref) and call.first.name.endswith("list"):
        made = Bag("list", [], site=site, born_in=caller.loops)
    return Table({}, open=True, rest=made, site=site, born_in=caller.loops)


@function("builtins.filter")
def _filter(caller: Caller, call: Call) -> Value:
    chosen = call.get(1, "iterable")
    if isinstance(chosen, Parameters):
        text = ast.unparse(call.node)
        return replace_parameters(chosen, only_trainable=".requires_grad" in text, partial=".requires_grad" not in text)
    return chosen if chosen is not None else UNKNOWN


def replace_parameters(p: Parameters, *, only_trainable: bool = False, partial: bool = False) -> Parameters:
    """The same parameters, filtered once more."""
    return Parameters(p.modules, p.only_trainable or only_trainable, p.partial or partial, p.named)


@function("itertools.chain", "itertools.chain.from_iterable")
def _chain(caller: Caller, call: Call) -> Value:
    args = call.args[0].items if len(call.args) == 1 and isinstance(call.args[0], Bag) else call.args
    held = [a for a in args if isinstance(a, Parameters)]
    if held and len(held) == len(args):
        return Parameters(
            tuple(m for p in held for m in p.modules), all(p.only_trainable for p in held), any(p.partial for p in held)
        )
    return Bag("generator", [caller.element(a, call.node, call.frame) for a in args], open=True)


@function("builtins.map")
def _map(caller: Caller, call: Call) -> Value:
    elements = [caller.element(a, call.node, call.frame) for a in call.args[1:]]
    return Bag("generator", [caller.call(call.first, elements, {}, call.node, call.frame)], open=True)


@function("functools.partial")
def _partial(caller: Caller, call: Call) -> Value:
    if isinstance(call.first, Ref) and call.first.name in TRANSFORMATIONS:
        return call.first
    return Thing("functools.partial", call.args, call.kwargs, caller.site(call.node, call.frame), call.node)


@function("builtins.getattr")
def _getattr(caller: Caller, call: Call) -> Value:
    name = call.get(1, "name")
    if isinstance(name, Const) and isinstance(name.value, str):
        return caller.attribute(call.first, name.value, call.node, call.frame)
    return UNKNOWN


@function("builtins.setattr")
def _setattr(caller: Caller, call: Call) -> Value:
    name, value = call.get(1, "name"), call.get(2, "value")
    if isinstance(name, Const) and isinstance(name.value, str) and value is not None:
        caller.set_attribute(call.first, name.value, value, call.node, call.frame)
    return NONE


@function("builtins.isinstance")
def _isinstance(caller: Caller, call: Call) -> Value:
    kind = call.get(1, "class")
    if isinstance(call.first, Thing) and isinstance(kind, Ref):
        if kind.name == call.first.type:
            return Const(True)
        if kind.name.startswith("torch.nn.") and call.first.type.startswith("torch.nn."):
            return Symbol("call", "isinstance")
    if isinstance(call.first, Instance) and isinstance(kind, Klass):
        return Const(any(i is kind.info for i in call.first.klass.info.lineage()))
    return Symbol("call", "isinstance")


@function("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "accelerate.debug_launcher")
def _spawn(caller: Caller, call: Call) -> Value:
    """The function that is started in every process; its first argument is the process's number."""
    given = call.kwargs.get("args") or (call.args[1] if len(call.args) > 1 else None)
    args = list(given.items) if isinstance(given, Bag) and not given.open else []
    if isinstance(call.first, Function):
        first: list[Value] = [] if call.name.endswith("debug_launcher") else [Symbol("rank", "rank")]
        caller.call(call.first, [*first, *args], {}, call.node, call.frame)
    return NONE


@function("builtins.open", "pathlib.Path")
def _open(caller: Caller, call: Call) -> Value:
    return Thing("file", call.args[:1], {}, caller.site(call.node, call.frame), call.node)


@function(
    "yaml.safe_load",
    "yaml.load",
    "yaml.full_load",
    "json.load",
    "omegaconf.OmegaConf.load",
    "tomllib.load",
    "tomli.load",
)
def _configuration(caller: Caller, call: Call) -> Value | None:
    """A configuration file that lies beside the code is read; its values are defaults that a user may change."""
    source = call.first
    source = source.args[0] if isinstance(source, Thing) and source.type == "file" and source.args else source
    if not (isinstance(source, Const) and isinstance(source.value, str)):
        return None
    return configuration.read(source.value, call.frame.file.path, caller.site(call.node, call.frame))


# argparse


@method("add_argument")
def _add_argument(caller: Caller, call: Call) -> Value | None:
    if not isinstance(call.receiver, Thing):
        return None
    names = [a.value for a in call.args if isinstance(a, Const) and isinstance(a.value, str)]
    dest = call.kwargs.get("dest")
    longest = max(names, key=len, default="")
    key = dest.value if isinstance(dest, Const) else longest.lstrip("-").replace("-", "_")
    default = call.kwargs.get("default")
    action = call.kwargs.get("action")
    if default is None and isinstance(action, Const):
        default = Const({"store_true": False, "store_false": True}.get(str(action.value)))
    value: Value = Symbol("option", str(key))
    if isinstance(default, Const) and default.value is not None:
        value = Const(default.value, fixed=False)
    call.receiver.state.setdefault("options", {})[str(key)] = value
    return UNKNOWN


@method("add_argument_group", "add_mutually_exclusive_group")
def _group(caller: Caller, call: Call) -> Value | None:
    return call.receiver


@method("parse_args", "parse_known_args")
def _parse_args(caller: Caller, call: Call) -> Value | None:
    if not (isinstance(call.receiver, Thing) and "options" in call.receiver.state):
        return None
    parsed = Table(dict(call.receiver.state["options"]), open=True, site=call.receiver.site)
    return Bag("tuple", [parsed, UNKNOWN]) if call.name.endswith("known_args") else parsed


# modules and parameters


@method("parameters", "named_parameters", "trainable_parameters")
def _parameters(caller: Caller, call: Call) -> Value | None:
    if not isinstance(call.receiver, (Thing, Instance, Symbol)):
        return None
    named = call.name.endswith("named_parameters")
    return Parameters((call.receiver,), named=named)


@method(
    "to",
    "cuda",
    "cpu",
    "half",
    "bfloat16",
    "float",
    "double",
    "train",
    "eval",
    "requires_grad_",
    "apply",
    "compile",
    "to_empty",
    "share_memory",
)
def _module_method(caller: Caller, call: Call) -> Value | None:
    """Methods that change a module and return it; the interpreter records the event."""
    owner = call.receiver
    last = call.name.rpartition(".")[2]
    if isinstance(owner, Symbol):
        return owner if last in ("to", "cuda", "cpu", "train", "eval", "requires_grad_", "half", "bfloat16") else None
    if not isinstance(owner, (Thing, Instance)):
        return None
    if last == "requires_grad_":
        freeze(owner, truth(call.get(0, "requires_grad")) is False)
    if last in ("half", "bfloat16", "double", "float", "to"):
        named = [dtype_of(a) for a in (*call.args, *call.kwargs.values())]
        dtype = {"half": "float16", "bfloat16": "bfloat16", "double": "float64", "float": "float32"}.get(
            last, next((d for d in named if d), None)
        )
        if dtype is not None:
            owner.state["dtype"] = dtype
            owner.state["dtype_site"] = caller.site(call.node, call.frame)
    if last == "apply" and isinstance(call.first, Function):
        for part in submodules(owner)[:40]:
            caller.call(call.first, [part], {}, call.node, call.frame)
    return owner


def submodules(owner: Value, seen: set[int] | None = None) -> list[Value]:
    """The module itself and those inside it that are known."""
    seen = set() if seen is None else seen
    if id(owner) in seen or len(seen) > 300:
        return []
    seen.add(id(owner))
    if isinstance(owner, Instance):
        if not owner.klass.info.is_module:
            return []
        inner: list[Value] = list(owner.attrs.values())
    elif isinstance(owner, Thing):
        if not owner.type.startswith("torch.nn.") and "wraps" not in owner.state:
            return []
        inner = [*owner.args, owner.state.get("wraps") or UNKNOWN, *owner.state.get("attrs", {}).values()]
    elif isinstance(owner, (Bag, Table)):
        inner = list(owner.items) if isinstance(owner, Bag) else [*owner.items.values(), owner.rest or UNKNOWN]
        return [m for part in inner for m in submodules(part, seen)]
    else:
        return []
    return [owner, *(m for part in inner for m in submodules(part, seen))]


def freeze(owner: Value, frozen: bool) -> None:
    """Set requires_grad of everything inside a module."""
    for part in submodules(owner) or [owner]:
        if isinstance(part, (Thing, Instance)):
            part.state["frozen"] = frozen


@function(
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.DataParallel",
    "torch.compile",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    "torch.jit.script",
    "apex.parallel.DistributedDataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.distributed.fsdp.fully_shard",
    "torch.nn.utils.weight_norm",
    "torch.nn.utils.spectral_norm",
    "torch.nn.utils.parametrizations.spectral_norm",
    "torch.nn.utils.parametrizations.weight_norm",
)
def _wrapper(caller: Caller, call: Call) -> Value | None:
    if call.name.startswith(("torch.compile", "torch.jit", "torch.nn.SyncBatch", "torch.nn.utils")) or (
        call.name.endswith("fully_shard")
    ):
        return call.first
    return Thing(
        call.name,
        call.args,
        call.kwargs,
        caller.site(call.node, call.frame),
        call.node,
        {"wraps": call.first},
        caller.loops,
    )


@function("copy.deepcopy")
def _deepcopy(caller: Caller, call: Call) -> Value:
    value, site = call.first, caller.site(call.node, call.frame)
    if isinstance(value, Instance):
        caller.created += 1
        return Instance(value.klass, site, call.node, dict(value.attrs), dict(value.state, bound={}), caller.loops)
    if isinstance(value, Thing):
        caller.created += 1
        return Thing(value.type, value.args, value.kwargs, site, call.node, dict(value.state, bound={}), caller.loops)
    return value


@method("from_pretrained", "from_config")
def _from_pretrained(caller: Caller, call: Call) -> Value | None:
    """`PeftModel.from_pretrained(base, path)` comes frozen unless `is_trainable=True` (peft's documented default)."""
    if not isinstance(call.receiver, Ref):
        return None
    caller.created += 1
    thing = Thing(
        call.receiver.name, call.args, call.kwargs, caller.site(call.node, call.frame), call.node, {}, caller.loops
    )
    last = call.receiver.name.rpartition(".")[2]
    if last.startswith(("PeftModel", "AutoPeftModel")) and "is_trainable" not in call.kwargs:
        thing.state["frozen"] = True
        thing.state["frozen_by"] = "is_trainable defaults to False"
    dtype = dtype_of(call.kwargs.get("torch_dtype") or call.kwargs.get("dtype"))
    if dtype is not None:
        thing.state["dtype"] = dtype
        thing.state["dtype_site"] = thing.site
    thing.state["pretrained"] = True
    return thing


@function("peft.get_peft_model")
def _get_peft_model(caller: Caller, call: Call) -> Value:
    caller.created += 1
    return Thing(
        "peft.PeftModel",
        call.args,
        call.kwargs,
        caller.site(call.node, call.frame),
        call.node,
        {"adapted": call.first},
        caller.loops,
    )


@method(
    "prepare",
    "setup",
    "prepare_model",
    "prepare_data_loader",
    "setup_dataloaders",
    "prepare_optimizer",
    "prepare_scheduler",
    "setup_module",
    "setup_optimizers",
)
def _prepare(caller: Caller, call: Call) -> Value | None:
    if not (isinstance(call.receiver, Thing) and call.receiver.short in ("Accelerator", "Fabric") and call.args):
        return None
    for arg in call.args:
        if isinstance(arg, (Thing, Instance)):
            arg.state["prepared"] = call.receiver
            arg.state["prepared_site"] = caller.site(call.node, call.frame)
    return call.args[0] if len(call.args) == 1 else Bag("tuple", list(call.args))


@function("deepspeed.initialize")
def _deepspeed(caller: Caller, call: Call) -> Value:
    model = call.kwargs.get("model") or (call.args[1] if len(call.args) > 1 else UNKNOWN)
    engine = Thing(
        "deepspeed.DeepSpeedEngine",
        (),
        call.kwargs,
        caller.site(call.node, call.frame),
        call.node,
        {"wraps": model, "engine": True},
        caller.loops,
    )
    return Bag("tuple", [engine, engine, UNKNOWN, UNKNOWN])


@method("scale")
def _scale(caller: Caller, call: Call) -> Value | None:
    if not isinstance(call.receiver, (Thing, Symbol)) or len(call.args) != 1:
        return None
    if isinstance(call.receiver, Thing) and call.receiver.short != "GradScaler":
        return None
    value = call.first
    if isinstance(value, Tensor):
        return value.tagged("scaled")
    if isinstance(value, Symbol):
        return Symbol("call", "scale", value, value.depth + 1)
    return UNKNOWN


# data


@function("torch.utils.data.random_split")
def _random_split(caller: Caller, call: Call) -> Value:
    part = Thing("torch.utils.data.Subset", call.args[:1], {}, caller.site(call.node, call.frame), call.node)
    return Bag("list", [part], open=True)


@function("sklearn.model_selection.train_test_split")
def _train_test_split(caller: Caller, call: Call) -> Value:
    halves: list[Value] = []
    for arg in call.args:
        part = replace(arg, shape=_without_first_size(arg)) if isinstance(arg, Tensor) else arg
        halves += [part, part]
    return Bag("list", halves)


def _without_first_size(t: Tensor) -> Any:
    return (
        replace(t.shape, dims=(None, *t.shape.dims[1:]))
        if t.shape is not None and t.shape.exact and t.shape.dims
        else t.shape
    )


# jax transformations: calling the result calls the function

TRANSFORMATIONS = frozenset(
    {
        "jax.jit",
        "jax.vmap",
        "jax.pmap",
        "jax.grad",
        "jax.value_and_grad",
        "jax.checkpoint",
        "jax.remat",
        "flax.nnx.jit",
        "equinox.filter_jit",
        "equinox.filter_vmap",
        "equinox.filter_grad",
        "equinox.filter_value_and_grad",
        "flax.nnx.grad",
        "flax.nnx.value_and_grad",
        "flax.linen.compact",
        "flax.linen.nowrap",
        "functools.wraps",
        "torch.compile",
        "jax.jacrev",
        "jax.jacfwd",
        "jax.hessian",
        "functools.lru_cache",
        "functools.cache",
        "torch.jit.script",
        "jax.named_call",
        "torch.func.vmap",
        "torch.func.grad",
        "torch.vmap",
        "torch._dynamo.disable",
        "torch.compiler.disable",
    }
)


def transformed(name: str, args: tuple[Value, ...]) -> Value | None:
    """`jax.jit(f)`: the same function, marked."""
    if name not in TRANSFORMATIONS or not args or not isinstance(args[0], Function):
        return None
    f = args[0]
    return Function(f.info, f.closure, f.closures, f.owner, (*f.wrappers, name))


@method("get")
def _get(caller: Caller, call: Call) -> Value | None:
    if isinstance(call.receiver, Table) and call.args:
        found = containers.item(call.receiver, call.args[0], ast.Constant(0))
        known = isinstance(call.args[0], Const) and call.args[0].value in call.receiver.items
        return found if known or len(call.args) < 2 else call.args[1]
    return None


@method("items")
def _items(caller: Caller, call: Call) -> Value | None:
    if isinstance(call.receiver, Table):
        values = [*call.receiver.items.values(), *([call.receiver.rest] if call.receiver.rest else [])]
        keys = list(call.receiver.items)
        key: Value = Const(keys[0]) if len(keys) == 1 and not call.receiver.open else Symbol("key", "key")
        return Bag("list", [Bag("tuple", [key, containers.joined(values)])], open=True)
    return None


@method("values", "copy")
def _values(caller: Caller, call: Call) -> Value | None:
    if isinstance(call.receiver, Table):
        if call.name.endswith("copy"):
            return Table(dict(call.receiver.items), call.receiver.open, call.receiver.rest)
        return Bag(
            "list",
            [*call.receiver.items.values(), *([call.receiver.rest] if call.receiver.rest else [])],
            call.receiver.open,
        )
    return call.receiver if isinstance(call.receiver, Bag) else None


@method("append", "add", "appendleft")
def _append(caller: Caller, call: Call) -> Value | None:
    if isinstance(call.receiver, Bag):
        if caller.loops != call.receiver.born_in:
            call.receiver.open = True
            call.receiver.size = caller.loops[-1].count if caller.loops else None
        if len(call.receiver.items) < 12:
            call.receiver.items.append(call.first)
        return NONE
    if isinstance(call.receiver, Thing) and call.receiver.short in ("ModuleList", "Sequential") and call.args:
        held = containers.members(call.receiver)
        items = [*(held.items if held else []), call.first][:30]
        call.receiver.args = (Bag("list", items, open=bool(caller.loops)),)
        return call.receiver
    return None


@method("extend", "update")
def _extend(caller: Caller, call: Call) -> Value | None:
    if isinstance(call.receiver, Bag):
        more = call.first
        call.receiver.open = call.receiver.open or not isinstance(more, Bag) or more.open
        found = more.items if isinstance(more, Bag) else [caller.element(more, call.node, call.frame)]
        call.receiver.items.extend(found[: max(0, 20 - len(call.receiver.items))])
        return NONE
    if isinstance(call.receiver, Table):
        if call.args:
            containers.merge_tables(call.receiver, call.first)
        call.receiver.items.update(call.kwargs)
        return NONE
    return None


@method("clear", "pop", "popleft")
def _clear(caller: Caller, call: Call) -> Value | None:
    if isinstance(call.receiver, Bag):
        call.receiver.cleared = True
        return containers.joined(call.receiver.items)
    return None


@method("__init__")
def _foreign_init(caller: Caller, call: Call) -> Value:
    return NONE


def method_of(value: Value | None) -> str:
    """How the receiver of a method is named in an event."""
    if isinstance(value, Thing):
        return value.type
    if isinstance(value, Instance):
        return value.klass.info.name
    if isinstance(value, Ref):
        return value.name
    if isinstance(value, Method):
        return f"{method_of(value.receiver)}.{value.name}"
    return type(value).__name__
