"""What calls of torch, accelerate, peft and the data libraries mean, and what hooks of modules do: these are followed
where they are registered, apart from what happens there."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code import axes
from traindx_tools.on_code.axis_calls import given_to
from traindx_tools.on_code.descriptions import Axes, Axis
from traindx_tools.on_code.interpreter import Call, Interpreter
from traindx_tools.on_code.library import freeze, function, method, submodules, thaw_some
from traindx_tools.on_code.tensors import copied, dtype_of
from traindx_tools.on_code.values import (
    NONE,
    UNKNOWN,
    Bag,
    Function,
    Instance,
    Parameters,
    Ref,
    Site,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    number,
    truth,
)

if TYPE_CHECKING:
    from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.trace import Block


@method("parameters", "named_parameters", "trainable_parameters")
def _parameters(caller: Interpreter, call: Call) -> Value | None:
    if not isinstance(call.receiver, (Thing, Instance, Symbol)):
        return None
    named = call.name.endswith("named_parameters")
    lazy = not call.name.endswith("trainable_parameters")
    return Parameters((call.receiver,), named=named, lazy=lazy, loops=len(caller.loops))


@method(*words("followed.toml", "module_methods"))
def _module_method(caller: Interpreter, call: Call) -> Value | None:
    """Methods that change a module and return it; the interpreter records the event."""
    owner = call.receiver
    last = call.name.rpartition(".")[2]
    if isinstance(owner, Symbol):
        if last == "requires_grad_" and truth(call.get(0, "requires_grad")) is not False:
            thaw_some(owner, caller.frozen)
        return owner if last in ("to", "cuda", "cpu", "train", "eval", "requires_grad_", "half", "bfloat16") else None
    if not isinstance(owner, (Thing, Instance)):
        return None
    if last == "apply" and not isinstance(call.first, Function):
        return None  # flax: `model.apply(variables, x)` is a call of the model
    if last == "requires_grad_" and isinstance(owner, Thing) and isinstance(owner.state.get("of"), Parameters):
        wanted = truth(call.get(0, "requires_grad")) if call.args or call.kwargs else True
        caller.freeze_parameters(owner, wanted, call.site)
        return owner
    if last == "requires_grad_":
        caller.frozen += freeze(owner, truth(call.get(0, "requires_grad")) is False, call.site)
    if last in ("half", "bfloat16", "double", "float", "to"):
        named = [dtype_of(a) for a in (*call.args, *call.kwargs.values())]
        dtype = {"half": "float16", "bfloat16": "bfloat16", "double": "float64", "float": "float32"}.get(last,
            next((d for d in named if d), None))
        if dtype is not None:
            owner.state["dtype"] = dtype
            owner.state["dtype_site"] = call.site
    if last == "apply" and isinstance(call.first, Function):
        for part in submodules(owner)[:40]:
            caller.call(call.first, [part], {}, call.node, call.frame)
    return owner


@function("torch.nn.utils.rnn.pad_sequence")
def _padded(caller: Interpreter, call: Call) -> Value | None:
    """Rows of one length; what is filled in is left out of a cross entropy only if it is -100."""
    filled = call.get(2, "padding_value")
    certain = filled is None or (number(filled) is not None and number(filled) != -100)
    tags = frozenset({"padded"} if certain else ())
    return Tensor(grad=None, site=call.site, tags=tags)


@function("torch.nn.utils.rnn.pad_packed_sequence")
def _unpacked(caller: Interpreter, call: Call) -> Value | None:
    """The padded sequence and the lengths."""
    return Bag("tuple", [call.first, Symbol("lengths", "lengths")]) if isinstance(call.first, Tensor) else None


@method(*words("followed.toml", "new_parameters"))
def _new_parameters(caller: Interpreter, call: Call) -> Value | None:
    """Methods of model libraries that add parameters which train, or let some train again."""
    if call.receiver is not None:
        thaw_some(call.receiver, ())
    return None


@function(*words("followed.toml", "model_wrappers"))
def _wrapper(caller: Interpreter, call: Call) -> Value | None:
    if call.name.startswith(("torch.compile", "torch.jit", "torch.nn.SyncBatch",
            "torch.nn.utils")) or (call.name.endswith("fully_shard")):
        return call.first
    return Thing(call.name, call.args, call.kwargs, call.site, call.node, {"wraps": call.first}, caller.loops)


@function("torch.autograd.grad")
def _autograd_grad(caller: Interpreter, call: Call) -> Value:
    """Gradients as values; they carry a graph of their own where `create_graph` is set."""
    site = call.site
    graph = truth(call.get(4, "create_graph"))
    of = call.get(1, "inputs")
    of_data = isinstance(of, Tensor) or (isinstance(of, Symbol) and of.role in ("item", "iteration", "parameter"))
    tags = {"gradient"} if graph is not True else set()
    tags |= {f"+slope@{site}"} if of_data and (graph is False or call.get(4, "create_graph") is None) else set()
    return Bag("tuple", [Tensor(grad=graph is True, site=site, tags=frozenset(tags))])


@function("torch.autograd.Variable", "torch.autograd.variable.Variable")
def _variable(caller: Interpreter, call: Call) -> Value | None:
    """Since torch 0.4 the same numbers as a tensor of its own, without the graph that led to them."""
    if not isinstance(call.first, Tensor):
        return call.first  # what a loader gave: it has no graph
    wanted = truth(call.get(1, "requires_grad")) is True
    return replace(call.first, grad=wanted, site=call.site, parents=frozenset(), models=frozenset())


@function("copy.deepcopy")
def _deepcopy(caller: Interpreter, call: Call) -> Value:
    value, site = call.first, call.site
    if isinstance(value, Symbol):
        return Symbol("call", f"deepcopy@{site}", value, min(value.depth + 1, 6))
    if isinstance(value, (Instance, Thing)):
        caller.created += 1
        return _copied(value, site, call.node, caller.loops, {})
    return copied(value) if isinstance(value, Tensor) else value


def _copied(value: Value, site: Site, node: ast.AST, loops: tuple[Block, ...], known: dict[int, Value]) -> Value:
    """A module with everything inside it copied; what is no module stays the same object."""
    if id(value) in known:
        return known[id(value)]
    made: Value = value
    if isinstance(value, Instance):
        made = known[id(value)] = Instance(value.klass, site, node, {}, dict(value.state, bound={}), loops)
        made.attrs.update({k: _copied(v, site, node, loops, known) for k, v in value.attrs.items()})
    elif isinstance(value, Thing) and (not known or value.type.startswith("torch.nn.")):
        made = known[id(value)] = Thing(value.type, (), value.kwargs, site, node, dict(value.state, bound={}), loops)
        made.args = tuple(_copied(a, site, node, loops, known) for a in value.args)
    elif isinstance(value, Bag) and any(isinstance(i, (Thing, Instance)) for i in value.items):
        made = known[id(value)] = Bag(value.kind, [], value.open, value.site, loops, size=value.size)
        made.items.extend(_copied(i, site, node, loops, known) for i in value.items)
    return made


@method("from_pretrained", "from_config")
def _from_pretrained(caller: Interpreter, call: Call) -> Value | None:
    """`PeftModel.from_pretrained(base, path)` comes frozen unless `is_trainable=True` (peft's documented default)."""
    if not isinstance(call.receiver, Ref):
        return None
    caller.created += 1
    thing = Thing(call.receiver.name, call.args, call.kwargs, call.site, call.node, {}, caller.loops)
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
def _get_peft_model(caller: Interpreter, call: Call) -> Value:
    caller.created += 1
    return Thing("peft.PeftModel", call.args, call.kwargs, call.site, call.node, {"adapted": call.first}, caller.loops)


@method(*words("followed.toml", "prepares"))
def _prepare(caller: Interpreter, call: Call) -> Value | None:
    if not (isinstance(call.receiver, Thing) and call.receiver.short in ("Accelerator", "Fabric") and call.args):
        return None
    for arg in call.args:
        if isinstance(arg, (Thing, Instance)):
            arg.state["prepared"] = call.receiver
            arg.state["prepared_site"] = call.site
    return call.args[0] if len(call.args) == 1 else Bag("tuple", list(call.args))


@function("deepspeed.initialize")
def _deepspeed(caller: Interpreter, call: Call) -> Value:
    model = call.kwargs.get("model") or (call.args[1] if len(call.args) > 1 else UNKNOWN)
    state = {"wraps": model, "engine": True}
    engine = Thing("deepspeed.DeepSpeedEngine", (), call.kwargs, call.site, call.node, state, caller.loops)
    return Bag("tuple", [engine, engine, UNKNOWN, UNKNOWN])


@method("optimizers")
def _optimizers(caller: Interpreter, call: Call) -> Value | None:
    """Lightning's `self.optimizers()`: what `configure_optimizers` returned."""
    owner = call.receiver
    if not isinstance(owner, Instance) or not owner.klass.info.derives("LightningModule"):
        return None
    if "optimizers" not in owner.state:
        method = owner.klass.info.method("configure_optimizers")
        loops, caller.loops = caller.loops, ()  # made once, before any loop
        made = caller.call(caller.bound(method, owner), [], {}, call.node, call.frame) if method else UNKNOWN
        caller.loops = loops
        owner.state["optimizers"] = _only_optimizers(made)
    return owner.state["optimizers"]  # type: ignore[no-any-return]


def _only_optimizers(made: Value) -> Value:
    if isinstance(made, Table):
        return made.items.get("optimizer", UNKNOWN)
    if not isinstance(made, Bag):
        return made
    items = made.items
    if len(items) == 2 and isinstance(items[0], Bag):  # ([optimizers], [schedulers])
        items = items[0].items
    found = [i.items.get("optimizer", UNKNOWN) if isinstance(i, Table) else i for i in items]
    return found[0] if len(found) == 1 else Bag("list", found)


@method("scale")
def _scale(caller: Interpreter, call: Call) -> Value | None:
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


@method("get_scale")
def _get_scale(caller: Interpreter, call: Call) -> Value | None:
    if isinstance(call.receiver, (Thing, Symbol)) and not call.args:
        return Symbol("loss scale", str(call.site))
    return None


@function("torch.utils.data.random_split")
def _random_split(caller: Interpreter, call: Call) -> Value:
    part = Thing("torch.utils.data.Subset", call.args[:1], {}, call.site, call.node)
    return Bag("list", [part], open=True)


@function("sklearn.model_selection.train_test_split")
def _train_test_split(caller: Interpreter, call: Call) -> Value:
    halves: list[Value] = []
    for arg in call.args:
        found, whole = axes.place(axes.of(arg), 0), axes.of(arg)
        for half in ("train", "test"):  # of all arguments the same rows
            rows = Axis(f"{half} rows@{call.site}", "batch")
            halves.append(given_to(arg, replace(whole, dims=(rows, *found[0][1:]))) if found and whole else arg)
    return Bag("list", halves)


@function("sklearn.datasets.make_regression", "sklearn.datasets.fetch_california_housing",
          "sklearn.datasets.load_diabetes")  # fmt: skip
def _regression_data(caller: Interpreter, call: Call) -> Value | None:
    """Rows and one target for each, where the call asks for both and for one target."""
    made = call.name.endswith("make_regression")
    if {"n_targets", "coef", "as_frame"} & call.kwargs.keys() or not (made or truth(call.kwargs.get("return_X_y"))):
        return None
    site = call.site
    one = Axis(f"rows@{site}", "batch")
    rows = Tensor(grad=False, axes=Axes((one, Axis("", "feature"))), site=site, tags=frozenset({"floating"}))
    return Bag("tuple", [rows, replace(rows, axes=Axes((one,)))])


@method("__init__")
def _foreign_init(caller: Interpreter, call: Call) -> Value:
    return NONE


FORWARD = frozenset({"register_forward_hook", "register_module_forward_hook"})


@method(*FORWARD, "register_full_backward_hook", "register_backward_hook", "register_full_backward_pre_hook")
def _registered(caller: Interpreter, call: Call) -> Value | None:
    """A hook that is registered: what it does, it does at each pass of the module."""
    hook, module = call.get(0, "hook"), call.receiver
    if isinstance(hook, Thing) and hook.type == "functools.partial" and isinstance(hook.args[0], Function):
        given, hook = list(hook.args[1:]), hook.args[0]
    else:
        given = []
    site = call.site
    if isinstance(hook, Function):
        block = Block("hook", call.node, call.frame.file, call.frame.function, subject=module)
        caller.blocks[-1].body.append(block)
        caller.blocks.append(block)
        loops, caller.loops = caller.loops, (*caller.loops, block)
        grad, caller.grad = caller.grad, True
        caller.call(hook, [*given, module or UNKNOWN, *_given(call, module, site)], {}, call.node, call.frame)
        caller.loops, caller.grad = loops, grad
        caller.blocks.pop()
    return Symbol("call", f"hook handle@{site}")


@method("register_step_post_hook")
def _after_steps(caller: Interpreter, call: Call) -> Value | None:
    """A hook of an optimizer: its body runs after each step."""
    if isinstance(call.receiver, Thing) and isinstance(call.first, Function):
        call.receiver.state.setdefault("after_step", []).append(call.first)
    return None


def _given(call: Call, module: Value | None, site: Site) -> list[Value]:
    """What a hook is given beside the module: inputs and output, or the gradients of both."""
    if call.name.rpartition(".")[2] not in FORWARD:
        gradient = Tensor(grad=False, site=site, tags=frozenset({"gradient"}))
        return [Bag("tuple", [gradient], open=True), Bag("tuple", [gradient], open=True)]
    known = isinstance(module, (Thing, Instance, Symbol))
    inputs = Bag("tuple", [Tensor(grad=None, site=site)], open=True)
    return [inputs, Tensor(grad=True, site=site, models=frozenset({id(module)} if known else ()))]
