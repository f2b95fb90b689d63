"""What the calls of installed packages mean: the registry, and what several entries share.

Each entry takes the interpreter and a `Call` and returns the call's value, or None to leave it to the general rules.
The entries are in `python_calls`, `torch_calls` and `jax_calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code.definitions import FunctionInfo
from traindx_tools.on_code.interpreter import Handler
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Const,
    Function,
    Instance,
    Method,
    Parameters,
    Ref,
    Site,
    Table,
    Thing,
    Value,
)
from traindx_tools.on_code.values import (
    parts as parts_of,
)

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


def replace_parameters(p: Parameters, *, only_trainable: bool = False, partial: bool = False) -> Parameters:
    """The same parameters, filtered once more."""
    return Parameters(p.modules, p.only_trainable or only_trainable, p.partial or partial, p.named,
                      p.lazy, p.spent, p.loops)


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
        grown = any(isinstance(a, (Thing, Instance)) for a in owner.state.get("attrs", {}).values())
        if not owner.type.startswith("torch.nn.") and "wraps" not in owner.state and not grown:
            return []
        inner = [*owner.args, owner.state.get("wraps") or UNKNOWN, *owner.state.get("attrs", {}).values()]
    elif isinstance(owner, (Bag, Table)):
        inner = list(owner.items) if isinstance(owner, Bag) else [*owner.items.values(), owner.rest or UNKNOWN]
        return [m for part in inner for m in submodules(part, seen)]
    else:
        return []
    return [owner, *(m for part in inner for m in submodules(part, seen))]


def freeze(owner: Value, frozen: bool, site: Site | None = None) -> list[Thing | Instance]:
    """Set requires_grad of everything inside a module, and remember where. Returns what is frozen by it."""
    parts = [p for p in submodules(owner) or [owner] if isinstance(p, (Thing, Instance))]
    for part in parts:
        part.state["frozen"] = frozen
        part.state["frozen_site"] = site
    return parts if frozen else []


def thaw_some(target: Value, frozen: Iterable[Thing | Instance]) -> None:
    """Some parameters train again, of a part that is not known.

    Whether the modules that the part was reached from are frozen is not known any more; where it is not known what that
    is, no module that was `frozen` is certain.
    """
    roots = [p for p in parts_of(target) if isinstance(p, (Thing, Instance))]
    inside = [m for root in roots for m in submodules(root) or [root]]
    for part in inside or frozen:
        if isinstance(part, (Thing, Instance)) and part.state.get("frozen"):
            part.state["frozen"] = None


TRANSFORMATIONS = words("names.toml", "transformations")


def transformed(name: str, args: tuple[Value, ...], kwargs: Mapping[str, Value]) -> Value | None:
    """`jax.jit(f)`: the same function, marked; of an object of the project, its `__call__`."""
    f = args[0] if args and name in TRANSFORMATIONS else None
    if isinstance(f, Instance) and (own := f.klass.info.method("__call__")) is not None:
        f = Function(own.info, own.closure, own.closures, f, own.wrappers)
    if not isinstance(f, Function):
        return None
    statics = static_parameters(name, f.info, kwargs)
    return Function(f.info, f.closure, f.closures, f.owner, (*f.wrappers, name), statics)


def static_parameters(name: str, info: FunctionInfo, options: Mapping[str, Value]) -> frozenset[str]:
    """The parameters that a compilation takes for static: those named; all that are plain numbers in equinox."""
    names = info.parameters
    if name == "equinox.filter_jit":
        return frozenset(names)
    given = [options[k] for k in ("static_argnums", "static_argnames", "static_broadcasted_argnums") if k in options]
    told = [v.value for g in given for v in (g.items if isinstance(g, Bag) else [g]) if isinstance(v, Const)]
    return frozenset(t if isinstance(t, str) else names[t] for t in told
                     if isinstance(t, str) or (isinstance(t, int) and -len(names) <= t < len(names)))


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
